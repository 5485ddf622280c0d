// Talks to a server through RavenDB's client for Node, and checks what comes back.
//
//     node client.mjs PACKAGE URL
//
// PACKAGE is a name under which package.json installs the client, URL a server whose
// data directory is empty. It prints one line for each check, and exits with 1 if one
// fails.
import { documents, finding, reducing, refused } from "./definitions.mjs";

const [name, url] = process.argv.slice(2);
const module = await import(name);
const raven = module.DocumentStore ? module : module.default;
const {
    DocumentStore, CreateDatabaseOperation, DeleteDatabasesOperation, GetDatabaseNamesOperation, GetStatisticsOperation,
    GetCollectionStatisticsOperation, GetDatabaseRecordOperation, NextIdentityForOperation, SeedIdentityForOperation, GetIdentitiesOperation,
    PutCompareExchangeValueOperation, GetCompareExchangeValueOperation, GetCompareExchangeValuesOperation, DeleteCompareExchangeValueOperation,
    GetBuildNumberOperation, PutClientConfigurationOperation, GetClientConfigurationOperation, PutDocumentCommand, DeleteDocumentCommand,
    PatchOperation, PatchRequest, PatchByQueryOperation, DeleteByQueryOperation, PutAttachmentOperation, GetAttachmentOperation, DeleteAttachmentOperation,
    ConfigureRevisionsOperation, RevisionsConfiguration, RevisionsCollectionConfiguration, ConfigureExpirationOperation, ConfigureRefreshOperation, CompactDatabaseOperation,
    PutIndexesOperation, IndexDefinition, GetIndexOperation, GetIndexesOperation, GetIndexNamesOperation, DeleteIndexOperation, ResetIndexOperation,
    GetTermsOperation, DisableIndexOperation, EnableIndexOperation, GetIndexStatisticsOperation, GetIndexesStatisticsOperation, GetIndexingStatusOperation, GetIndexErrorsOperation, IndexHasChangedOperation,
    SetIndexesLockOperation, FacetOptions, RangeBuilder, AbstractJavaScriptIndexCreationTask, AbstractCsharpIndexCreationTask, GetOperationStateOperation, BatchPatchCommandData, PatchCommandData, PointField, WktField,
} = raven;

let passed = 0, failed = 0;

function check(what, ok, detail) {
    if (ok) passed++; else failed++;
    if (!ok) console.log(`FAIL ${what}: ${detail}`);
}

function equal(what, got, want) {
    const [g, w] = [JSON.stringify(got), JSON.stringify(want)];
    check(what, g === w, `got ${g}, want ${w}`);
}

async function throws(what, kind, fn) {
    try {
        await fn();
        check(what, false, "no error");
    } catch (err) {
        check(what, err.name === kind, `got ${err.name}: ${err.message}`);
    }
}

class User { constructor(o) { Object.assign(this, o); } }
class Company { constructor(o) { Object.assign(this, o); } }
class Order { constructor(o) { Object.assign(this, o); } }

function open(database) {
    const store = new DocumentStore(url, database);
    for (const type of [User, Company, Order]) store.conventions.registerEntityType(type);
    return store.initialize();
}

async function databases() {
    const store = open("Acorns");
    const server = store.maintenance.server;
    await throws("a missing database", "DatabaseDoesNotExistException", async () => {
        const session = store.openSession();
        await session.load("users/1");
    });
    const made = await server.send(new CreateDatabaseOperation({ databaseName: "Acorns" }));
    equal("created", made.name, "Acorns");
    await throws("created twice", "ConcurrencyException", () => server.send(new CreateDatabaseOperation({ databaseName: "acorns" })));
    await throws("a name that leads out", "BadRequestException", () => server.send(new CreateDatabaseOperation({ databaseName: "a..b" })));
    await server.send(new CreateDatabaseOperation({ databaseName: "second" }));
    equal("names", await server.send(new GetDatabaseNamesOperation(0, 20)), ["Acorns", "second"]);
    equal("page of names", await server.send(new GetDatabaseNamesOperation(1, 20)), ["second"]);
    const record = await server.send(new GetDatabaseRecordOperation("Acorns"));
    equal("record", record.databaseName, "Acorns");
    await server.send(new DeleteDatabasesOperation({ databaseNames: ["second"], hardDelete: true }));
    equal("names", await server.send(new GetDatabaseNamesOperation(0, 20)), ["Acorns"]);
    await server.send(new DeleteDatabasesOperation({ databaseNames: ["second"], hardDelete: true })); // gone already
    equal("version", (await server.send(new GetBuildNumberOperation())).productVersion, "5.4");
    store.dispose();
}

async function sessions() {
    const store = open("Acorns");
    {
        const session = store.openSession();
        const ann = new User({ name: "Ann", age: 30, price: 1.5, tags: ["a", "b"], nested: { deep: [1, { x: null }] } });
        await session.store(ann);
        equal("HiLo", ann.id, "users/1-A");
        equal("changes", session.advanced.hasChanges(), true);
        await session.saveChanges();
        equal("no changes", session.advanced.hasChanges(), false);
        equal("collection", session.advanced.getMetadataFor(ann)["@collection"], "Users");
        check("change vector", !!session.advanced.getChangeVectorFor(ann), "none");
        check("last modified", session.advanced.getLastModifiedFor(ann) instanceof Date, "no date");
    }
    {
        const session = store.openSession();
        const ann = await session.load("users/1-A", User);
        equal("loaded", [ann.name, ann.age, ann.price, ann.tags, ann.nested], ["Ann", 30, 1.5, ["a", "b"], { deep: [1, { x: null }] }]);
        check("type", ann instanceof User, ann.constructor.name);
        check("identity map", await session.load("users/1-A") === ann, "another object");
        equal("one request", session.advanced.numberOfRequests, 1);
        ann.age = 31;
        await session.saveChanges();
        equal("missing", await session.load("users/none"), null);
        const many = await session.load(["users/1-A", "users/none"]);
        equal("many", [many["users/1-A"].age, many["users/none"]], [31, null]);
        equal("exists", [await session.advanced.exists("users/1-A"), await session.advanced.exists("users/x")], [true, false]);
        equal("case", (await session.load("USERS/1-a")).age, 31);
    }
    {
        const session = store.openSession();
        await session.delete("users/1-A");
        await session.saveChanges();
        equal("deleted", await session.load("users/1-A"), null);
    }
    store.dispose();
}

async function ids() {
    const store = open("Acorns");
    const session = store.openSession();
    const named = new User({ name: "named" });
    await session.store(named, "users/by name+&=?#%é日本");
    const identity = new User({ name: "identity" });
    await session.store(identity, "users|");
    const side = new User({ name: "side" });
    await session.store(side, "users/");
    const guid = new User({ name: "guid" });
    await session.store(guid, "");
    const hilo = new User({ name: "hilo" });
    await session.store(hilo);
    await session.saveChanges();
    equal("semantic", session.advanced.getDocumentId(named), "users/by name+&=?#%é日本");
    equal("identity", session.advanced.getDocumentId(identity), "users/1");
    check("server-side", /^users\/\d{19}-A$/.test(session.advanced.getDocumentId(side)), session.advanced.getDocumentId(side));
    check("hilo", /^users\/\d+-A$/.test(session.advanced.getDocumentId(hilo)), session.advanced.getDocumentId(hilo));
    const again = store.openSession();
    for (const [what, entity] of Object.entries({ named, identity, side, hilo })) {
        equal(what, (await again.load(session.advanced.getDocumentId(entity))).name, what);
    }
    const anyId = session.advanced.getDocumentId(guid);
    equal("guid", (await again.load(anyId)).name, "guid");
    equal("next identity", await store.maintenance.send(new NextIdentityForOperation("users|")), 2);
    equal("seed", await store.maintenance.send(new SeedIdentityForOperation("users|", 100)), 100);
    equal("seed down", await store.maintenance.send(new SeedIdentityForOperation("users|", 50)), 100);
    equal("forced", await store.maintenance.send(new SeedIdentityForOperation("users|", 60, true)), 60);
    equal("identities", await store.maintenance.send(new GetIdentitiesOperation()), { "users|": 60 });
    await again.delete(session.advanced.getDocumentId(named));
    await again.saveChanges();
    equal("deleted", await store.openSession().load(session.advanced.getDocumentId(named)), null);
    store.dispose();
}

async function concurrency() {
    const store = open("Acorns");
    const first = store.openSession();
    await first.store(new User({ name: "v1" }), "users/conflict");
    await first.saveChanges();
    const [a, b] = [store.openSession(), store.openSession()];
    a.advanced.useOptimisticConcurrency = b.advanced.useOptimisticConcurrency = true;
    const [ua, ub] = [await a.load("users/conflict"), await b.load("users/conflict")];
    ua.name = "a";
    await a.saveChanges();
    ub.name = "b";
    await throws("optimistic concurrency", "ConcurrencyException", () => b.saveChanges());
    equal("the first won", (await store.openSession().load("users/conflict")).name, "a");
    const insert = store.openSession();
    insert.advanced.useOptimisticConcurrency = true;
    await insert.store(new User({ name: "c" }), "users/conflict");
    await throws("an insert over a document", "ConcurrencyException", () => insert.saveChanges());
    const together = store.openSession();
    await together.store(new User({ name: "not stored" }), "users/together");
    const stale = await together.load("users/conflict");
    stale.name = "x";
    together.advanced.useOptimisticConcurrency = true;
    ua.name = "again";
    await a.saveChanges();
    await throws("all or nothing", "ConcurrencyException", () => together.saveChanges());
    equal("nothing stored", await store.openSession().load("users/together"), null);
    store.dispose();
}

async function includes() {
    const store = open("Acorns");
    const session = store.openSession();
    for (let i = 1; i <= 3; i++) await session.store(new Company({ name: "company " + i }), "companies/" + i);
    await session.store(new Order({ company: "companies/1", others: ["companies/2", "companies/3"], lines: [{ maker: "companies/2" }, { maker: "companies/none" }] }), "orders/1");
    await session.saveChanges();
    for (const [path, requests] of [["company", ["companies/1"]], ["others", ["companies/2", "companies/3"]], ["lines[].maker", ["companies/2"]]]) {
        const one = store.openSession();
        const order = await one.include(path).load("orders/1");
        equal("order", order.company, "companies/1");
        for (const id of requests) check(path, (await one.load(id)).name.startsWith("company"), "missing");
        equal(path + " brings them along", one.advanced.numberOfRequests, 1);
    }
    const lazy = store.openSession();
    const [x, y, z] = [lazy.advanced.lazily.load("companies/1"), lazy.advanced.lazily.load("orders/1"), lazy.advanced.lazily.load("companies/none")];
    await lazy.advanced.eagerly.executeAllPendingLazyOperations();
    equal("lazy", [(await x.getValue()).name, (await y.getValue()).company, await z.getValue()], ["company 1", "companies/1", null]);
    equal("one request", lazy.advanced.numberOfRequests, 1);
    const refreshed = store.openSession();
    const company = await refreshed.load("companies/1");
    const other = store.openSession();
    (await other.load("companies/1")).name = "company 1";
    company.name = "changed here";
    await refreshed.advanced.refresh(company);
    equal("refreshed", company.name, "company 1");
    const prefix = await store.openSession().advanced.loadStartingWith("companies/", { start: 1, pageSize: 1 });
    equal("prefix", prefix.map(c => c.name), ["company 2"]);
    const matching = await store.openSession().advanced.loadStartingWith("companies/", { matches: "1|3" });
    equal("matches", matching.map(c => c.name), ["company 1", "company 3"]);
    const collected = [];
    for await (const item of await store.openSession().advanced.stream("companies/")) collected.push(item.document.name);
    equal("stream", collected, ["company 1", "company 2", "company 3"]);
    store.dispose();
}

async function commands() {
    const store = open("Acorns");
    const executor = store.getRequestExecutor();
    const put = new PutDocumentCommand("raw/1", null, { n: 1, "@metadata": { "@collection": "Raws" } });
    await executor.execute(put);
    equal("put", put.result.id, "raw/1");
    const head = tag => fetch(`${url}/databases/Acorns/docs?id=raw%2F1`, { method: "HEAD", headers: { "If-None-Match": tag } });
    equal("head", (await head("x")).headers.get("ETag"), `"${put.result.changeVector}"`);
    equal("head as the clients send it", (await head(put.result.changeVector)).status, 304);
    await throws("a stale delete", "ConcurrencyException", () => executor.execute(new DeleteDocumentCommand("raw/1", "A:1-x")));
    await executor.execute(new DeleteDocumentCommand("raw/1", put.result.changeVector));
    equal("missing", (await head("x")).status, 404);
    const stats = await store.maintenance.send(new GetStatisticsOperation());
    check("statistics", stats.countOfDocuments > 5, JSON.stringify(stats));
    const collections = await store.maintenance.send(new GetCollectionStatisticsOperation());
    equal("companies", collections.collections.Companies, 3);
    equal("no configuration", (await store.maintenance.send(new GetClientConfigurationOperation())).configuration, null);
    await store.maintenance.send(new PutClientConfigurationOperation({ maxNumberOfRequestsPerSession: 7, disabled: false, etag: 0 }));
    const configured = await store.maintenance.send(new GetClientConfigurationOperation());
    equal("configuration", configured.configuration.maxNumberOfRequestsPerSession, 7);
    store.dispose();
}

async function queries() {
    const store = open("Acorns");
    const session = store.openSession();
    for (let i = 1; i <= 5; i++) await session.store(new User({ name: "user " + i, age: 20 + i, city: i % 2 ? "Bern" : "Genf" }), "people/" + i);
    await session.saveChanges();
    const query = () => store.openSession().query({ collection: "Users" });
    const names = async q => (await q.all()).map(u => u.name);
    equal("equals", await names(query().whereEquals("age", 23)), ["user 3"]);
    equal("not equals", (await names(query().whereStartsWith("name", "user").whereNotEquals("age", 23).orderBy("age", "Long"))).length, 4);
    equal("greater", await names(query().whereGreaterThan("age", 23).orderByDescending("age", "Long")), ["user 5", "user 4"]);
    equal("between", await names(query().whereBetween("age", 22, 24).orderBy("age", "Long")), ["user 2", "user 3", "user 4"]);
    equal("in", await names(query().whereIn("age", [21, 25]).orderBy("age", "Long")), ["user 1", "user 5"]);
    equal("prefix", await names(query().whereStartsWith("name", "user 4")), ["user 4"]);
    equal("suffix", await names(query().whereEndsWith("name", " 4")), ["user 4"]);
    equal("exists", (await names(query().whereExists("city"))).length, 5);
    equal("or", await names(query().whereEquals("age", 21).orElse().whereEquals("age", 22).orderBy("name")), ["user 1", "user 2"]);
    equal("page", await names(query().whereExists("age").orderBy("age", "Long").skip(1).take(2)), ["user 2", "user 3"]);
    equal("count", await query().whereEquals("city", "Bern").count(), 3);
    equal("any", await query().whereEquals("city", "Rom").any(), false);
    equal("first", (await query().whereEquals("city", "Genf").orderBy("age", "Long").first()).name, "user 2");
    let stats;
    equal("statistics", await names(query().whereExists("city").statistics(s => stats = s).orderBy("age", "Long").take(1)), ["user 1"]);
    equal("total", stats.totalResults, 5);
    equal("raw", (await store.openSession().advanced.rawQuery("from Users where age > $a order by age as long limit 1").addParameter("a", 22).all()).map(u => u.name), ["user 3"]);
    equal("select", (await query().whereEquals("age", 23).selectFields(["name", "age"]).all()).map(u => [u.name, u.age]), [["user 3", 23]]);
    equal("select one", await query().whereEquals("age", 23).selectFields("name").all(), ["user 3"]);
    equal("distinct", (await query().whereExists("city").selectFields("city").distinct().all()).sort(), ["Bern", "Genf"]);
    equal("ids", (await query().whereEquals("age", 23).all()).map(u => u.id), ["people/3"]);
    equal("long count", await query().whereExists("city").longCount(), 5);
    equal("single", (await query().whereEquals("age", 24).single()).name, "user 4");
    equal("group by", (await store.openSession().query({ collection: "Users" }).whereExists("city").groupBy("city").selectKey().selectCount().all()).map(g => [g.city, g.count]).sort(), [["Bern", 3], ["Genf", 2]]);
    const facets = await query().whereExists("city").aggregateBy(f => f.byField("city").withOptions(Object.assign(new FacetOptions(), { termSortMode: "CountDesc", pageSize: 1, includeRemainingTerms: true })).sumOn("age"))
        .andAggregateBy(f => f.byRanges(RangeBuilder.forPath("age").isLessThan(22), RangeBuilder.forPath("age").isGreaterThanOrEqualTo(22)).maxOn("age")).execute();
    equal("facets", Object.keys(facets), ["city", "age"]);
    equal("facet of a field", facets.city.values.map(v => [v.range, v.count, v.sum]), [["Bern", 3, 69]]);
    equal("remaining terms", [facets.city.remainingTerms, facets.city.remainingTermsCount, facets.city.remainingHits], [["Genf"], 1, 2]);
    equal("facet of ranges", facets.age.values.map(v => [v.range, v.count, v.max]), [["age < 22", 1, 21], ["age >= 22", 4, 25]]);
    const lazyCount = query().whereEquals("city", "Bern").lazily();
    equal("lazy query", (await lazyCount.getValue()).length, 3);
    const including = store.openSession();
    const [order] = await including.query({ collection: "Orders" }).include("company").all();
    equal("include", [(await including.load(order.company)).name, including.advanced.numberOfRequests], ["company 1", 1]);
    const streamed = [];
    for await (const item of await store.openSession().advanced.stream(query().whereExists("city").orderBy("age", "Long"))) streamed.push(item.document.name);
    equal("streamed", streamed, ["user 1", "user 2", "user 3", "user 4", "user 5"]);
    await throws("a wrong query", "InvalidQueryException", () => store.openSession().advanced.rawQuery("frm Users").all());
    store.dispose();
}

// whole reads a stream to its end.
async function whole(stream) {
    const chunks = [];
    for await (const chunk of stream) chunks.push(Buffer.from(chunk));
    return Buffer.concat(chunks).toString();
}

// soon waits until a condition holds.
async function soon(condition) {
    for (let i = 0; i < 200 && !condition(); i++) await new Promise(resolve => setTimeout(resolve, 50));
    return condition();
}

async function bulk() {
    const store = open("Acorns");
    const insert = store.bulkInsert();
    for (let i = 1; i <= 100000; i++) {
        const user = { name: "bulk " + i, n: i };
        const metadata = { "@collection": "Bulks" };
        if (!insert.tryStoreSync || !insert.tryStoreSync(user, "bulks/" + i, metadata)) await insert.store(user, "bulks/" + i, metadata);
    }
    await insert.finish();
    const collections = await store.maintenance.send(new GetCollectionStatisticsOperation());
    equal("bulk insert", collections.collections.Bulks, 100000);
    equal("the last one", (await store.openSession().load("bulks/100000")).n, 100000);

    const packed = store.bulkInsert({ useCompression: true });
    for (let i = 1; i <= 100; i++) await packed.store(new User({ name: "packed " + i }));
    await packed.attachmentsFor("bulks/1").store("note.txt", Buffer.from("[not, JSON}"), "text/plain");
    await packed.store(new User({ name: "behind" }), "bulks/behind");
    await packed.finish();
    equal("packed", (await store.openSession().load("bulks/behind")).name, "behind");
    const note = await store.openSession().advanced.attachments.get("bulks/1", "note.txt");
    equal("attachment of a bulk insert", await whole(note.data), "[not, JSON}");
    note.dispose();

    const aborted = store.bulkInsert();
    await aborted.store(new User({ name: "aborted" }), "bulks/aborted");
    await aborted.abort();
    await throws("an aborted bulk insert", "BulkInsertAbortedException", async () => {
        for (let i = 0; i < 1000; i++) {
            await aborted.store(new User({ name: "x".repeat(10000) }), "bulks/aborted" + i);
            await new Promise(resolve => setTimeout(resolve, 5));
        }
        await aborted.finish();
    });
    const refused = store.bulkInsert();
    await throws("a refused document", "BulkInsertAbortedException", async () => {
        await refused.store(new User({ name: "refused" }), "bulks/refused", { "@collection": "Bulks", "@expires": "never" });
        await refused.finish();
    });
    const unchanged = store.bulkInsert({ skipOverwriteIfUnchanged: true });
    const session = store.openSession();
    const before = session.advanced.getChangeVectorFor(await session.load("bulks/7"));
    await unchanged.store({ name: "bulk 7", n: 7 }, "bulks/7", { "@collection": "Bulks" });
    await unchanged.store({ name: "bulk 8", n: 88 }, "bulks/8", { "@collection": "Bulks" });
    await unchanged.finish();
    const after = store.openSession();
    equal("unchanged", after.advanced.getChangeVectorFor(await after.load("bulks/7")) === before, true);
    equal("changed", (await after.load("bulks/8")).n, 88);
    const empty = store.bulkInsert();
    await empty.finish();
    const reported = store.bulkInsert();
    const progress = [];
    reported.on("progress", p => progress.push(p.progress));
    for (let i = 0; i < 5; i++) await reported.store(new User({ name: "reported" }), "bulks/reported" + i);
    await new Promise(resolve => setTimeout(resolve, 1500));
    await reported.finish();
    check("progress of a bulk insert", await soon(() => progress.length > 0), "none");
    store.dispose();
}

async function changes() {
    const store = open("Acorns");
    const feed = store.changes();
    await feed.ensureConnectedNow();
    const seen = { all: [], one: [], prefix: [], collection: [], operations: [], indexes: [] };
    const observe = async (observable, list) => {
        observable.on("data", change => list.push(change));
        observable.on("error", () => {});
        await observable.ensureSubscribedNow();
        return observable;
    };
    await observe(feed.forAllDocuments(), seen.all);
    await observe(feed.forDocument("watched/1"), seen.one);
    await observe(feed.forDocumentsStartingWith("watched/"), seen.prefix);
    await observe(feed.forDocumentsInCollection("Watched"), seen.collection);
    await observe(feed.forAllOperations(), seen.operations);
    await observe(feed.forAllIndexes(), seen.indexes);
    const executor = store.getRequestExecutor();
    await executor.execute(new PutDocumentCommand("watched/1", null, { n: 1, "@metadata": { "@collection": "Watched" } }));
    await executor.execute(new PutDocumentCommand("Watched/2", null, { n: 1, "@metadata": { "@collection": "Others" } }));
    check("all documents", await soon(() => seen.all.filter(c => /^watched/i.test(c.id)).length === 2), JSON.stringify(seen.all)); // others: HiLo ranges that come back
    await executor.execute(new DeleteDocumentCommand("watched/1"));
    check("a deletion", await soon(() => seen.one.length === 2), JSON.stringify(seen.one));
    equal("types", seen.one.map(c => c.type), ["Put", "Delete"]);
    equal("of one", seen.one.map(c => c.id), ["watched/1", "watched/1"]);
    check("change vector", typeof seen.one[0].changeVector === "string", JSON.stringify(seen.one));
    check("of a prefix", await soon(() => seen.prefix.length === 3), JSON.stringify(seen.prefix));
    check("of a collection", await soon(() => seen.collection.length === 2), JSON.stringify(seen.collection));
    equal("collection", seen.collection[0].collectionName, "Watched");
    const operation = await store.operations.send(new DeleteByQueryOperation("from Others"));
    await operation.waitForCompletion();
    check("an operation", await soon(() => seen.operations.some(c => c.state.status === "Completed")), JSON.stringify(seen.operations));
    const definition = new IndexDefinition();
    definition.name = "Watched/ByN";
    definition.maps = new Set(["from doc in docs.Watched select new { doc.n }"]);
    await store.maintenance.send(new PutIndexesOperation(definition));
    check("an index", await soon(() => seen.indexes.some(c => c.name === "Watched/ByN")), JSON.stringify(seen.indexes));
    await store.maintenance.send(new DeleteIndexOperation("Watched/ByN"));
    check("a dropped index", await soon(() => seen.indexes.some(c => c.type === "IndexRemoved")), JSON.stringify(seen.indexes));
    feed.dispose();
    store.dispose();
}

async function attachments() {
    const store = open("Acorns");
    const session = store.openSession();
    const user = new User({ name: "with attachments" });
    await session.store(user, "attached/1");
    session.advanced.attachments.store("attached/1", "a.txt", Buffer.from("content of a"), "text/plain");
    session.advanced.attachments.store(user, "b.bin", Buffer.from([0, 1, 2, 255]), "application/octet-stream");
    await session.saveChanges();
    const again = store.openSession();
    const loaded = await again.load("attached/1");
    equal("names", again.advanced.attachments.getNames(loaded).map(a => a.name).sort(), ["a.txt", "b.bin"]);
    equal("exists", [await again.advanced.attachments.exists("attached/1", "a.txt"), await again.advanced.attachments.exists("attached/1", "none")], [true, false]);
    const a = await again.advanced.attachments.get("attached/1", "a.txt");
    equal("content", await whole(a.data), "content of a");
    equal("details", [a.details.name, a.details.contentType, a.details.size, typeof a.details.hash], ["a.txt", "text/plain", 12, "string"]);
    a.dispose();
    equal("no attachment", await again.advanced.attachments.get("attached/1", "none"), null);
    again.advanced.attachments.rename("attached/1", "a.txt", "c.txt");
    await again.saveChanges();
    const copies = store.openSession();
    await copies.store(new User({ name: "copy" }), "attached/2");
    await copies.saveChanges();
    copies.advanced.attachments.copy("attached/1", "c.txt", "attached/2", "copied.txt");
    copies.advanced.attachments.move("attached/1", "b.bin", "attached/2", "moved.bin");
    await copies.saveChanges();
    const third = store.openSession();
    equal("left", third.advanced.attachments.getNames(await third.load("attached/1")).map(a => a.name), ["c.txt"]);
    equal("there", third.advanced.attachments.getNames(await third.load("attached/2")).map(a => a.name).sort(), ["copied.txt", "moved.bin"]);
    third.advanced.attachments.delete("attached/2", "moved.bin");
    await third.saveChanges();
    equal("deleted", await store.openSession().advanced.attachments.exists("attached/2", "moved.bin"), false);
    const put = await store.operations.send(new PutAttachmentOperation("attached/2", "op.txt", Buffer.from("by operation"), "text/plain"));
    equal("put", [put.name, put.size, put.documentId, put.contentType], ["op.txt", 12, "attached/2", "text/plain"]);
    const got = await store.operations.send(new GetAttachmentOperation("attached/2", "op.txt", "Document", null));
    equal("got", await whole(got.data), "by operation");
    got.dispose();
    await store.operations.send(new DeleteAttachmentOperation("attached/2", "op.txt"));
    equal("deleted by operation", await store.openSession().advanced.attachments.exists("attached/2", "op.txt"), false);
    const counted = await store.maintenance.send(new GetStatisticsOperation());
    equal("counted", [counted.countOfAttachments, counted.countOfUniqueAttachments], [3, 2]);
    await throws("an attachment of no document", "DocumentDoesNotExistException", () => store.operations.send(new PutAttachmentOperation("attached/none", "x", Buffer.from("x"), "text/plain")));
    const atOnce = store.openSession();
    await throws("all or nothing", "AttachmentDoesNotExistException", async () => {
        await atOnce.store(new User({ name: "not stored" }), "attached/3");
        atOnce.advanced.attachments.copy("attached/1", "none", "attached/2", "x");
        await atOnce.saveChanges();
    });
    equal("nothing stored", await store.openSession().load("attached/3"), null);
    store.dispose();
}

async function revisions() {
    const store = open("Acorns");
    const configuration = new RevisionsConfiguration();
    const collection = new RevisionsCollectionConfiguration();
    collection.minimumRevisionsToKeep = 5;
    configuration.collections = new Map([["Companies", collection]]);
    const configured = await store.maintenance.send(new ConfigureRevisionsOperation(configuration));
    check("configured", configured.raftCommandIndex > 0, JSON.stringify(configured));
    for (let i = 1; i <= 4; i++) {
        const session = store.openSession();
        await session.store(new Company({ name: "revision " + i }), "companies/rev");
        await session.saveChanges();
    }
    const session = store.openSession();
    const list = await session.advanced.revisions.getFor("companies/rev");
    equal("revisions", list.map(c => c.name), ["revision 4", "revision 3", "revision 2", "revision 1"]);
    equal("a page", (await session.advanced.revisions.getFor("companies/rev", { start: 1, pageSize: 2 })).map(c => c.name), ["revision 3", "revision 2"]);
    const metadata = await session.advanced.revisions.getMetadataFor("companies/rev");
    equal("metadata", metadata.length, 4);
    check("flags", String(metadata[0]["@flags"]).includes("Revision"), JSON.stringify(metadata[0]));
    const vectors = metadata.map(m => m["@change-vector"]);
    equal("by change vector", (await store.openSession().advanced.revisions.get(vectors[2])).name, "revision 2");
    equal("by change vectors", Object.values(await store.openSession().advanced.revisions.get([vectors[1], vectors[3]])).map(c => c.name).sort(), ["revision 1", "revision 3"]);
    const late = new Date(Date.now() + 60000);
    equal("before a date", (await store.openSession().advanced.revisions.get("companies/rev", late)).name, "revision 4");
    equal("before all", await store.openSession().advanced.revisions.get("companies/rev", new Date(0)), null);
    equal("count", await store.openSession().advanced.revisions.getCountFor("companies/rev"), 4);
    const forced = store.openSession();
    await forced.store(new User({ name: "forced" }), "users/forced");
    await forced.saveChanges();
    forced.advanced.revisions.forceRevisionCreationFor("users/forced");
    await forced.saveChanges();
    equal("a forced revision", (await store.openSession().advanced.revisions.getFor("users/forced")).length, 1);
    const expiration = await store.maintenance.send(new ConfigureExpirationOperation({ disabled: false, deleteFrequencyInSec: 1 }));
    check("expiration", expiration.raftCommandIndex > 0, JSON.stringify(expiration));
    const refresh = await store.maintenance.send(new ConfigureRefreshOperation({ disabled: false, refreshFrequencyInSec: 1 }));
    check("refresh", refresh.raftCommandIndex > 0, JSON.stringify(refresh));
    const due = store.openSession();
    const gone = new User({ name: "gone" });
    await due.store(gone, "users/gone");
    due.advanced.getMetadataFor(gone)["@expires"] = new Date(Date.now() + 300).toISOString();
    await due.saveChanges();
    let expired = false;
    for (let i = 0; i < 200 && !expired; i++) {
        await new Promise(resolve => setTimeout(resolve, 50));
        expired = await store.openSession().load("users/gone") === null;
    }
    check("expired", expired, "it is still there");
    store.dispose();
}

async function patches() {
    const store = open("Acorns");
    const make = async () => {
        const session = store.openSession();
        await session.store(new User({ name: "patched", age: 10, tags: ["a", "b"], address: { city: "Bern" }, lines: [{ n: 1 }, { n: 2 }] }), "patched/1");
        await session.saveChanges();
    };
    const read = async (id = "patched/1") => store.openSession().load(id);
    await make();
    const session = store.openSession();
    session.advanced.patch("patched/1", "name", "new name");
    session.advanced.patch("patched/1", "address.city", "Genf");
    session.advanced.increment("patched/1", "age", 5);
    session.advanced.increment("patched/1", "visits", 1);
    session.advanced.patchArray("patched/1", "tags", tags => tags.push("c", "d"));
    await session.saveChanges();
    let user = await read();
    equal("patched", [user.name, user.address.city, user.age, user.visits, user.tags], ["new name", "Genf", 15, 1, ["a", "b", "c", "d"]]);
    const removing = store.openSession();
    removing.advanced.patchArray("patched/1", "tags", tags => tags.removeAt(1));
    await removing.saveChanges();
    equal("removed", (await read()).tags, ["a", "c", "d"]);
    const tracked = store.openSession();
    const entity = await tracked.load("patched/1");
    tracked.advanced.increment(entity, "age", 1);
    await tracked.saveChanges();
    equal("a tracked entity", entity.age, 16);
    const adding = store.openSession();
    if (adding.advanced.addOrIncrement) {
        adding.advanced.addOrIncrement("patched/new", new User({ name: "made", age: 1 }), "age", 5);
        adding.advanced.addOrPatch("patched/1", new User({}), "name", "by addOrPatch");
        adding.advanced.addOrPatchArray("patched/1", new User({}), "tags", tags => tags.push("e"));
        await adding.saveChanges();
        equal("made", [(await read("patched/new")).age, (await read()).name, (await read()).tags], [1, "by addOrPatch", ["a", "c", "d", "e"]]);
    }
    const request = (script, values) => Object.assign(PatchRequest.forScript(script), { values });
    const patch = (id, script, values, missing) => store.operations.send(new PatchOperation(id, null, request(script, values), missing ? request(missing) : null));
    const done = await patch("patched/1", "this.lines[1].n = args.n; this.total = this.lines.map(l => l.n).reduce((a, b) => a + b, 0)", { n: 41 });
    equal("status", done.status, "Patched");
    equal("by operation", (await read()).total, 42);
    equal("not modified", (await patch("patched/1", "this.total = 42")).status, "NotModified");
    equal("missing", (await patch("patched/none", "this.x = 1")).status, "DocumentDoesNotExist");
    equal("created", (await patch("patched/2", "this.x = 1", null, "this.y = 2")).status, "Created");
    equal("what was created", (await read("patched/2")).y, 2);
    await patch("patched/1", "put('patched/3', { from: id(this), name: load('patched/2').y }); this.tags = this.tags.filter(t => t !== args.t)", { t: "a" });
    equal("put and load", [(await read("patched/3")).from, (await read("patched/3")).name, (await read()).tags.includes("a")], ["patched/1", 2, false]);
    await throws("a script that is none", "JavaScriptException", () => patch("patched/1", "this.x ="));
    await throws("a script that loops", "JavaScriptException", () => patch("patched/1", "while (true) {}"));
    await throws("a script that is not there", "NotSupportedException", () => patch("patched/1", "this.at = new Date()"));
    await throws("a stale patch", "ConcurrencyException", () => store.operations.send(new PatchOperation("patched/1", "A:1-x", request("this.x = 1"))));
    const skipped = await store.operations.send(new PatchOperation("patched/1", "A:1-x", request("this.x = 1"), null, true));
    equal("skipped", skipped.status === "Skipped" || skipped.status === "NotModified", true);
    const many = store.openSession();
    many.advanced.defer(new BatchPatchCommandData(request("this.batch = true"), null, "patched/2", "patched/3"));
    many.advanced.defer(new PatchCommandData("patched/1", null, request("this.batch = 1"), null));
    await many.saveChanges();
    equal("a batch", [(await read("patched/1")).batch, (await read("patched/2")).batch, (await read("patched/3")).batch], [1, true, true]);

    const other = store.openSession();
    for (let i = 1; i <= 300; i++) await other.store(new Order({ n: i, total: i }), "byquery/" + i);
    await other.saveChanges();
    const byQuery = await store.operations.send(new PatchByQueryOperation("from Orders as o where o.n > 100 update { o.total = o.total * 2; this.small = false }"));
    await byQuery.waitForCompletion();
    equal("patched by query", [(await read("byquery/100")).total, (await read("byquery/101")).total, (await read("byquery/101")).small], [100, 202, false]);
    const state = await store.maintenance.send(new GetOperationStateOperation(byQuery.id));
    equal("state", [state.status, state.result.total], ["Completed", 200]);
    const failing = await store.operations.send(new PatchByQueryOperation("from Orders update { this.x = this.none.y }"));
    await throws("a patch by query that fails", "JavaScriptException", () => failing.waitForCompletion());
    await throws("a query that updates nothing", "BadRequestException", () => store.operations.send(new PatchByQueryOperation("from Orders")));
    const deleting = await store.operations.send(new DeleteByQueryOperation("from Orders where n > 200"));
    await deleting.waitForCompletion();
    equal("deleted by query", [await read("byquery/201"), (await read("byquery/200")).n], [null, 200]);
    const compacting = await store.maintenance.server.send(new CompactDatabaseOperation({ databaseName: "Acorns", documents: true }));
    await compacting.waitForCompletion();
    check("compacted", true);
    store.dispose();
}

class People_ByName extends (AbstractJavaScriptIndexCreationTask ?? Object) {
    constructor() {
        super();
        this.map("Users", user => ({ name: user.name, age: user.age }));
    }
}

async function indexes() {
    const store = open("Acorns");
    await new People_ByName().execute(store);
    const definition = new IndexDefinition();
    definition.name = "Users/ByCity";
    definition.maps = new Set(["docs.Users.Select(user => new { city = user.city, user.age })"]);
    await store.maintenance.send(new PutIndexesOperation(definition));
    equal("names", (await store.maintenance.send(new GetIndexNamesOperation(0, 10))).sort(), ["People/ByName", "Users/ByCity"]);
    equal("definition", (await store.maintenance.send(new GetIndexOperation("users/bycity"))).name, "Users/ByCity");
    equal("no definition", await store.maintenance.send(new GetIndexOperation("none")) ?? null, null);
    equal("definitions", (await store.maintenance.send(new GetIndexesOperation(0, 10))).length, 2);
    const statistics = await store.maintenance.send(new GetIndexStatisticsOperation("Users/ByCity"));
    equal("statistics", [statistics.name, statistics.state], ["Users/ByCity", "Normal"]);
    equal("all statistics", (await store.maintenance.send(new GetIndexesStatisticsOperation())).length, 2);
    equal("status", (await store.maintenance.send(new GetIndexingStatusOperation())).status, "Running");
    equal("errors", (await store.maintenance.send(new GetIndexErrorsOperation())).map(e => e.errors.length), [0, 0]);
    equal("has not changed", await store.maintenance.send(new IndexHasChangedOperation(definition)), false);
    let stats;
    const found = await store.openSession().query({ indexName: "Users/ByCity" }).whereEquals("city", "Bern").orderBy("age", "Long").statistics(s => stats = s).all();
    equal("from index", found.map(u => u.name), ["user 1", "user 3", "user 5"]);
    equal("its name", stats.indexName, "Users/ByCity");
    const waiting = await store.openSession().query({ index: People_ByName }).waitForNonStaleResults(5000).whereEquals("name", "user 2").all();
    equal("a JavaScript index", waiting.map(u => u.age), [22]);
    await store.maintenance.send(new ResetIndexOperation("Users/ByCity"));
    await store.maintenance.send(new SetIndexesLockOperation("Users/ByCity", "LockedIgnore"));
    equal("locked", (await store.maintenance.send(new GetIndexOperation("Users/ByCity"))).lockMode, "LockedIgnore");
    equal("terms", await store.maintenance.send(new GetTermsOperation("Users/ByCity", "city", null, 10)), ["bern", "genf"]);
    await store.maintenance.send(new DisableIndexOperation("Users/ByCity"));
    equal("disabled", (await store.maintenance.send(new GetIndexStatisticsOperation("Users/ByCity"))).state, "Disabled");
    await throws("a query of a disabled index", "BadRequestException", () => store.openSession().query({ indexName: "Users/ByCity" }).all());
    await store.maintenance.send(new EnableIndexOperation("Users/ByCity"));
    equal("enabled", (await store.maintenance.send(new GetIndexStatisticsOperation("Users/ByCity"))).state, "Normal");
    const broken = new IndexDefinition();
    broken.name = "Broken";
    broken.maps = new Set(["from u in docs.Users select { u.city }"]);
    await throws("a text that is not C#", "IndexCompilationException", () => store.maintenance.send(new PutIndexesOperation(broken)));
    await throws("a query of no index", "IndexDoesNotExistException", () => store.openSession().query({ indexName: "None" }).all());
    await store.maintenance.send(new DeleteIndexOperation("Users/ByCity"));
    equal("dropped", await store.maintenance.send(new GetIndexNamesOperation(0, 10)), ["People/ByName"]);
    store.dispose();
}

class Sale { constructor(o) { Object.assign(this, o); } }
class Refund { constructor(o) { Object.assign(this, o); } }

class Sales_ByCity extends (AbstractJavaScriptIndexCreationTask ?? Object) {
    constructor() {
        super();
        this.map("Sales", s => ({ city: s.city, n: 1, total: s.qty * s.price }));
        this.reduce(results => results.groupBy(r => r.city).aggregate(g => ({ city: g.key, n: g.values.reduce((n, r) => n + r.n, 0), total: g.values.reduce((t, r) => t + r.total, 0) })));
    }
}

class Sales_Total extends (AbstractCsharpIndexCreationTask ?? Object) {
    constructor() {
        super();
        this.map = `from s in docs.Sales select new { Total = s.qty * s.price, s.city, Share = 12 / s.qty }`;
        this.store("Total", "Yes");
    }
}

// computed installs each shape of a definition that computes, and asks it.
async function computed() {
    const store = open("Acorns");
    store.conventions.registerEntityType(Sale);
    store.conventions.registerEntityType(Refund);
    const session = store.openSession();
    for (const [type, list] of [[Sale, documents.Sales], [Refund, documents.Refunds]]) {
        for (const [id, body] of Object.entries(list)) await session.store(new type(structuredClone(body)), id);
    }
    await session.saveChanges();
    const define = async (name, maps, reduce, options = {}) => {
        const definition = new IndexDefinition();
        Object.assign(definition, { name, maps: new Set(maps) }, reduce ? { reduce } : {}, options);
        await store.maintenance.send(new PutIndexesOperation(definition));
        return definition;
    };
    const drop = name => store.maintenance.send(new DeleteIndexOperation(name));
    for (const [what, maps, member, wanted] of finding) {
        await define("Shape", maps);
        for (const [value, ids] of Object.entries(wanted)) {
            const typed = value === "true" ? true : value === "false" ? false : isNaN(value) || member === "zip" || value === "3000" ? value : Number(value);
            const found = await store.openSession().query({ indexName: "Shape" }).waitForNonStaleResults().whereEquals(member, typed).all();
            equal(`${what}: ${value}`, found.map(d => d.id).sort(), ids.map(id => typeof id === "number" ? `sales/${id}` : id).sort());
        }
        await drop("Shape");
    }
    for (const [what, maps, reduce, wanted] of reducing) {
        await define("Groups", maps, reduce);
        const names = Object.keys(wanted[0]);
        const query = store.openSession().advanced.rawQuery(`from index 'Groups' order by ${names.slice(0, 2).join(", ")}`).waitForNonStaleResults();
        equal(`reduce: ${what}`, (await query.all()).map(one => Object.fromEntries(names.map(name => [name, one[name]]))), wanted);
        await drop("Groups");
    }
    for (const [what, maps, kind, says, reduce, options] of refused) {
        try {
            await define("Refused", maps, reduce, options);
            check(`refused: ${what}`, false, "no error");
            await drop("Refused");
        } catch (err) {
            check(`refused: ${what}`, err.name === kind && err.message.includes(says) && (options || /line \d+, column \d+/.test(err.message)), `${err.name}: ${err.message}`);
        }
    }
    equal("what is refused is not there", await store.maintenance.send(new GetIndexOperation("Refused")) ?? null, null);

    await new Sales_ByCity().execute(store);
    await new Sales_Total().execute(store);
    let stats;
    const groups = await store.openSession().query({ index: Sales_ByCity }).whereGreaterThan("n", 1).statistics(s => stats = s).all();
    equal("groups of a client's class", groups.map(g => [g.city, g.n, g.total]), [["Bern", 2, 0]]);
    equal("its name", [stats.indexName, stats.isStale, stats.totalResults], ["Sales/ByCity", false, 1]);
    const page = await store.openSession().query({ index: Sales_Total }).orderByDescending("Total", "Double").skip(1).take(1).statistics(s => stats = s).all();
    equal("a page", [page.map(s => s.id), page[0].constructor.name, stats.totalResults], [["sales/2"], "Sale", 3]);
    const rows = await store.openSession().query({ index: Sales_Total }).whereEquals("city", "Genf").selectFields(["Total", "company"]).all();
    equal("rows of the index and of documents", rows.map(r => [r.Total, r.company]), [[0, "acme"]]);
    equal("a definition", (await store.maintenance.send(new GetIndexOperation("Sales/ByCity"))).type, "JavaScriptMapReduce");
    const errors = await store.maintenance.send(new GetIndexErrorsOperation(["Sales/Total"]));
    equal("errors", errors.map(e => [e.name, e.errors.map(x => [x.document, x.action, x.error.includes("division by zero"), x.timestamp instanceof Date])]), [["Sales/Total", [["sales/2", "Map", true, true]]]]);
    const statistics = await store.maintenance.send(new GetIndexStatisticsOperation("Sales/Total"));
    equal("statistics", [statistics.entriesCount, statistics.mapErrors, statistics.errorsCount, statistics.isStale, statistics.type], [3, 1, 1, false, "Map"]);
    equal("terms", await store.maintenance.send(new GetTermsOperation("Sales/ByCity", "city", null, 10)), ["bern", "genf"]);
    const definition = new Sales_Total().createIndexDefinition();
    definition.name = "Sales/Total";
    definition.maps = new Set([...definition.maps].map(m => m.replace("12 /", "13 /")));
    equal("has changed", await store.maintenance.send(new IndexHasChangedOperation(definition)), true);
    await store.maintenance.send(new ResetIndexOperation("Sales/Total"));
    await store.maintenance.send(new DisableIndexOperation("Sales/Total"));
    equal("disabled", (await store.maintenance.send(new GetIndexStatisticsOperation("Sales/Total"))).state, "Disabled");
    await store.maintenance.send(new EnableIndexOperation("Sales/Total"));
    const patched = await store.operations.send(new PatchByQueryOperation("from index 'Sales/Total' as s where s.Total > 5 update { s.seen = true }"));
    await patched.waitForCompletion();
    equal("patched by an index", (await store.openSession().query({ collection: "Sales" }).whereEquals("seen", true).all()).map(s => s.id), ["sales/1"]);
    const streamed = [];
    for await (const one of await store.openSession().advanced.stream(store.openSession().query({ index: Sales_Total }).orderBy("Total", "Double"))) streamed.push(one.document.id);
    equal("streamed", streamed, ["sales/3", "sales/2", "sales/1"]);
    await throws("a member that is not there", "InvalidQueryException", () => store.openSession().query({ index: Sales_Total }).whereEquals("none", 1).all());
    const deleting = await store.operations.send(new DeleteByQueryOperation("from index 'Sales/Total' where Total < 5"));
    await deleting.waitForCompletion();
    equal("groups after a deletion", (await store.openSession().query({ index: Sales_ByCity }).all()).map(g => [g.city, g.n, g.total]), [["Bern", 1, 7.5]]);
    await throws("a deletion by groups", "BadRequestException", () => store.operations.send(new DeleteByQueryOperation("from index 'Sales/ByCity'")));
    for (const name of ["Sales/Total", "Sales/ByCity"]) await drop(name);
    store.dispose();
}

class Shop { constructor(o) { Object.assign(this, o); } }

class Shops_ByPlace extends (AbstractJavaScriptIndexCreationTask ?? Object) {
    constructor() {
        super();
        this.map("Shops", s => ({ spot: createSpatialField(s.lat, s.lng), area: createSpatialField(s.area), open: s.open }));
        this.spatial("spot", factory => factory.geography().defaultOptions());
        this.spatial("area", factory => factory.geography().quadPrefixTreeIndex(20));
    }
}

class Shops_OfText extends (AbstractCsharpIndexCreationTask ?? Object) {
    constructor() {
        super();
        this.map = "from s in docs.Shops select new { spot = CreateSpatialField((double) s.lat, (double) s.lng), area = CreateSpatialField(s.area), s.open }";
        this.spatial("spot", factory => factory.geography().geohashPrefixTreeIndex(7));
    }
}

// places asks for places: of fields that a query names, and of indexes that have them.
async function places() {
    const store = open("Acorns");
    store.conventions.registerEntityType(Shop);
    const session = store.openSession();
    for (const [i, shop] of [
        { lat: 52.52, lng: 13.40, open: true, area: "POLYGON((13 52, 14 52, 14 53, 13 53, 13 52))" }, { lat: 52.45, lng: 13.30, open: false, area: "POINT(2 48)" },
        { lat: 48.10, lng: 11.60, open: true, area: "LINESTRING(179 -1, -179 1)" }, { open: true },
    ].entries()) await session.store(new Shop(shop), `shops/${i + 1}`);
    await session.saveChanges();
    const square = "POLYGON((11 48, 12 48, 12 49, 11 49, 11 48))";
    const ids = async query => (await query.all()).map(s => Number(s.id.slice(6)));
    const ask = async (what, from, spot, area) => {
        const is = async (name, query, wanted, sorted) => equal(`${name}, ${what}`, sorted ? (await ids(query)).sort() : await ids(query), wanted);
        await is("within a circle", from().spatial(spot, f => f.withinRadius(20, 52.5, 13.4)), [1, 2], true);
        await is("within a circle in miles", from().spatial(spot, f => f.withinRadius(6, 52.52, 13.4, "Miles")), [1], true);
        await is("within a polygon", from().spatial(spot, f => f.within(square)), [3], true);
        await is("within a circle of text", from().spatial(spot, f => f.within("Circle(13.4 52.5 d=20)")), [1, 2], true);
        await is("intersects", from().spatial(area, f => f.intersects("POLYGON((13.5 52.5, 20 52.5, 20 60, 13.5 60, 13.5 52.5))")), [1], true);
        await is("intersects, over the antimeridian", from().spatial(area, f => f.intersects("LINESTRING(179.5 -1, -179.5 1)")), [3], true);
        await is("contains", from().spatial(area, f => f.contains("POINT(13.2 52.2)")), [1], true);
        await is("disjoint", from().spatial(area, f => f.disjoint("POINT(13.2 52.2)")), [2, 3], true);
        await is("with an error that is allowed", from().spatial(spot, f => f.disjoint(square, "Kilometers", 0.1)), [1, 2], true);
        await is("relates to", from().spatial(spot, f => f.relatesToShape(square, "Within")), [3], true);
        await is("with another condition", from().spatial(spot, f => f.withinRadius(2000, 52.5, 13.4)).andAlso().whereEquals("open", true), [1, 3], true);
        await is("the nearest", from().spatial(spot, f => f.withinRadius(9000, 0, 13)).orderByDistance(spot, 52.4, 13.3), [2, 1, 3]);
        await is("the farthest", from().spatial(spot, f => f.withinRadius(9000, 0, 13)).orderByDistanceDescending(spot, 52.4, 13.3), [3, 1, 2]);
        await is("the nearest to a text", from().orderByDistance(spot, "POINT(11 48)").take(2), [3, 2]);
        await is("the farthest from a text", from().whereExists(what === "of fields" ? "lat" : "open").andAlso().spatial(spot, f => f.withinRadius(9000, 0, 13)).orderByDistanceDescending(spot, "POINT(11 48)"), [1, 2, 3]);
        await is("the nearest of all", from().orderByDistance(spot, 48, 11), [3, 2, 1, 4]);
        await throws(`a latitude of 152, ${what}`, "InvalidQueryException", () => from().spatial(spot, f => f.withinRadius(20, 152, 3)).all());
    };
    await ask("of fields", () => store.openSession().query({ collection: "Shops" }), new PointField("lat", "lng"), new WktField("area"));
    for (const index of [Shops_ByPlace, Shops_OfText]) {
        await new index().execute(store);
        await ask(`of ${index.name}`, () => store.openSession().query({ index }).waitForNonStaleResults(), "spot", "area");
        equal(`a radius, ${index.name}`, (await ids(store.openSession().query({ index }).withinRadiusOf("spot", 20, 52.5, 13.4))).sort(), [1, 2]);
        equal(`a rounded distance, ${index.name}`, await ids(store.openSession().query({ index }).spatial("spot", f => f.withinRadius(9000, 0, 13)).orderByDistance("spot", 52.4, 13.3, 100)), [1, 2, 3]);
        const stored = await store.maintenance.send(new GetIndexOperation(new index().getIndexName()));
        equal(`the options of a place, ${index.name}`, [stored.fields.spot.spatial.type, stored.fields.spot.spatial.strategy], ["Geography", "GeohashPrefixTree"]);
        await store.maintenance.send(new DeleteIndexOperation(new index().getIndexName()));
    }
    for (const s of await session.query({ collection: "Shops" }).all()) await session.delete(s.id);
    await session.saveChanges();
    store.dispose();
}

class Note { constructor(o) { Object.assign(this, o); } }

class Notes_ByVector extends (AbstractJavaScriptIndexCreationTask ?? Object) {
    constructor() {
        super();
        this.map("Notes", n => ({ single: createVector(n.single), signs: createVector(n.single), small: createVector(n.small), bits: createVector(n.bits), topic: n.topic }));
        this.vectorField("single", { dimensions: 8, sourceEmbeddingType: "Single", destinationEmbeddingType: "Int8", numberOfEdges: 20, numberOfCandidatesForIndexing: 20 });
        this.vectorField("signs", { sourceEmbeddingType: "Single", destinationEmbeddingType: "Binary" });
        this.vectorField("small", { sourceEmbeddingType: "Int8", destinationEmbeddingType: "Int8" });
        this.vectorField("bits", { sourceEmbeddingType: "Binary", destinationEmbeddingType: "Binary" });
    }
}

class Notes_OfText extends (AbstractJavaScriptIndexCreationTask ?? Object) {
    constructor() {
        super();
        this.map("Notes", n => ({ text: createVector(n.text) }));
        this.vectorField("text", { sourceEmbeddingType: "Text", destinationEmbeddingType: "Single" });
    }
}

// vectors asks for vectors in each form that documents may have.
async function vectors() {
    if (!raven.VectorQuantizer) return; // an older client
    const store = open("Acorns");
    store.conventions.registerEntityType(Note);
    const session = store.openSession();
    const all = [[3, -1, 0.5, -2, 1, 1, -1, 0.25], [3, -1, 0.4, -2, 1, 1, -1, -0.25], [-3, 1, 0.5, 2, 1, -1, 1, 0.25]];
    const base64 = v => Buffer.from(new Float32Array(v).buffer).toString("base64");
    const { toInt8, toInt1 } = raven.VectorQuantizer;
    for (const [i, v] of all.entries()) await session.store(new Note({ topic: i % 2, single: v, text: base64(v), raven: { "@vector": v }, small: toInt8(v), bits: toInt1(v), parts: [all[2], v] }), `notes/${i + 1}`);
    await session.store(new Note({ topic: 0 }), "notes/4");
    await session.saveChanges();
    const from = () => store.openSession().query({ collection: "Notes" });
    const is = async (name, query, wanted) => equal(`vectors: ${name}`, (await query.all()).map(n => Number(n.id.slice(6))).sort(), wanted);
    const [one, , three] = all;
    await is("of numbers", from().vectorSearch(f => f.withEmbedding("single"), f => f.byEmbedding(one), { similarity: 0.999 }), [1]);
    await is("the field by its name", from().vectorSearch("single", one, { similarity: 0.9 }), [1, 2]);
    await is("without a similarity", from().vectorSearch(f => f.withField("single"), f => f.byEmbedding(one)), [1, 2]);
    await is("in base64", from().vectorSearch(f => f.withBase64("text"), f => f.byBase64(base64(one)), { similarity: 0.999 }), [1]);
    await is("in an object", from().vectorSearch(f => f.withEmbedding("raven"), f => f.byEmbedding(one), { similarity: 0.999 }), [1]);
    await is("of numbers, kept as bytes", from().vectorSearch(f => f.withEmbedding("single").targetQuantization("Int8"), f => f.byEmbedding(one), { similarity: 0.999, numberOfCandidates: 50 }), [1]);
    await is("of numbers, kept as bits", from().vectorSearch(f => f.withEmbedding("single").targetQuantization("Binary"), f => f.byEmbedding(one), { similarity: 0.875 }), [1, 2]);
    await is("all bits", from().vectorSearch(f => f.withEmbedding("single").targetQuantization("Binary"), f => f.byEmbedding(one), { similarity: 1 }), [1]);
    await is("of bytes", from().vectorSearch(f => f.withEmbedding("small", "Int8"), f => f.byEmbedding(toInt8(one)), { similarity: 0.999 }), [1]);
    await is("of bits", from().vectorSearch(f => f.withEmbedding("bits", "Binary"), f => f.byEmbedding(toInt1(one)), { similarity: 0.875 }), [1, 2]);
    await is("several of a document", from().vectorSearch(f => f.withEmbedding("parts"), f => f.byEmbedding(three), { similarity: 0.999 }), [1, 2, 3]);
    await is("one of several", from().vectorSearch(f => f.withEmbedding("single"), f => f.byEmbeddings([one, three]), { similarity: 0.999 }), [1, 3]);
    await is("exactly", from().vectorSearch(f => f.withEmbedding("single"), f => f.byEmbedding(one), { similarity: 0.9, isExact: true }), [1, 2]);
    await is("candidates alone", from().vectorSearch(f => f.withEmbedding("single"), f => f.byEmbedding(one), { numberOfCandidates: 9 }), [1, 2]);
    await is("beside a condition", from().whereEquals("topic", 0).andAlso().vectorSearch("single", one, { similarity: 0.9 }), [1]);
    await throws("vectors: a text", "InvalidQueryException", () => from().vectorSearch(f => f.withText("text"), f => f.byText("oak")).all());
    await throws("vectors: that of a document", "InvalidQueryException", () => from().vectorSearch(f => f.withEmbedding("single"), f => f.forDocument("notes/1")).all());
    await throws("vectors: of zeros", "InvalidQueryException", () => from().vectorSearch("single", [0, 0]).all());
    const fused = await store.openSession().advanced.rawQuery("from Notes where vector.search(single, $v, -1) order by rank.fuse(vector.distance(single, $v), topic desc) limit 2").addParameter("v", one).all();
    equal("vectors: by ranks", fused.map(n => n.id), ["notes/1", "notes/2"]);

    // The same by an index, whose fields say which form they have.
    await new Notes_ByVector().execute(store);
    const of = () => store.openSession().query({ index: Notes_ByVector }).waitForNonStaleResults();
    await is("of an index", of().vectorSearch("single", one, { similarity: 0.999 }), [1]);
    await is("of an index, beside a condition", of().vectorSearch(f => f.withField("single"), f => f.byEmbedding(one), { similarity: 0.9 }).andAlso().whereEquals("topic", 1), [2]);
    await is("of an index, bits of numbers", of().vectorSearch("signs", one, { similarity: 0.875 }), [1, 2]);
    await is("of an index, bytes", of().vectorSearch("small", toInt8(one), { similarity: 0.999 }), [1]);
    await is("of an index, bits", of().vectorSearch("bits", toInt1(one), { similarity: 0.875 }), [1, 2]);
    await throws("vectors: bytes that are none", "InvalidQueryException", () => of().vectorSearch("small", one, { similarity: 0.9 }).all());
    const ranked = await store.openSession().advanced.rawQuery("from index 'Notes/ByVector' where vector.search(single, $v, -1) order by rank.fuse(vector.distance(single, $v), topic desc)").addParameter("v", one).all();
    equal("vectors: by ranks, of an index", ranked.map(n => n.id), ["notes/1", "notes/2", "notes/3"]);
    const defined = await store.maintenance.send(new GetIndexOperation("Notes/ByVector"));
    equal("vectors: the options of a field", [defined.fields.single.vector.dimensions, defined.fields.small.vector.sourceEmbeddingType], [8, "Int8"]);
    await store.maintenance.send(new DeleteIndexOperation("Notes/ByVector"));
    await throws("vectors: a definition of texts", "NotSupportedException", () => new Notes_OfText().execute(store));
    for (const n of await session.query({ collection: "Notes" }).all()) await session.delete(n.id);
    await session.saveChanges();
    store.dispose();
}

async function many() {
    const stores = [open("Acorns"), open("Acorns")];
    const seen = new Set();
    await Promise.all(Array.from({ length: 20 }, async (_, i) => {
        const session = stores[i % 2].openSession();
        const users = Array.from({ length: 20 }, () => new User({ name: "many" }));
        for (const user of users) await session.store(user);
        await session.saveChanges();
        for (const user of users) seen.add(user.id);
    }));
    equal("IDs of two clients", seen.size, 400);
    for (const store of stores) store.dispose();
}

async function compareExchange() {
    const store = open("Acorns");
    const send = operation => store.operations.send(operation);
    const first = await send(new PutCompareExchangeValueOperation("emails/ann", "users/1", 0));
    equal("put a value", [first.successful, first.value], [true, "users/1"]);
    const second = await send(new PutCompareExchangeValueOperation("emails/ann", "users/2", 0));
    equal("put over it", [second.successful, second.value, second.index], [false, "users/1", first.index]);
    const third = await send(new PutCompareExchangeValueOperation("emails/ann", new User({ name: "Ann" }), first.index));
    check("the index grows", third.successful && third.index > first.index, JSON.stringify(third));
    const got = await send(new GetCompareExchangeValueOperation("emails/ann", User));
    equal("get a value", [got.key, got.index, got.value.name], ["emails/ann", third.index, "Ann"]);
    equal("get nothing", await send(new GetCompareExchangeValueOperation("emails/none")) ?? null, null);
    await send(new PutCompareExchangeValueOperation("emails/bob", 7, 0));
    const page = await send(new GetCompareExchangeValuesOperation({ startWith: "emails/", start: 1, pageSize: 5 }));
    equal("a page of values", Object.values(page).map(v => [v.key, v.value]), [["emails/bob", 7]]);
    const some = await send(new GetCompareExchangeValuesOperation({ keys: ["emails/ann", "emails/bob"] }));
    equal("values by key", Object.keys(some).sort(), ["emails/ann", "emails/bob"]);
    equal("delete with an old index", (await send(new DeleteCompareExchangeValueOperation("emails/ann", first.index))).successful, false);
    equal("delete", (await send(new DeleteCompareExchangeValueOperation("emails/ann", third.index))).successful, true);
    equal("deleted", await send(new GetCompareExchangeValueOperation("emails/ann")) ?? null, null);
    await throws("a key that is too long", "CompareExchangeKeyTooBigException", () => send(new PutCompareExchangeValueOperation("k".repeat(513), 1, 0)));
    store.dispose();
}

async function clusterWide() {
    const store = open("Acorns");
    const session = () => store.openSession({ transactionMode: "ClusterWide", disableAtomicDocumentWritesInClusterWideTransaction: undefined });
    const one = session();
    one.advanced.clusterTransaction.createCompareExchangeValue("names/cyd", new User({ name: "Cyd" }));
    const cyd = new User({ name: "Cyd" });
    await one.store(cyd, "cluster/cyd");
    await one.saveChanges();
    const value = await store.operations.send(new GetCompareExchangeValueOperation("names/cyd", User));
    equal("a value of a session", value.value.name, "Cyd");
    const guards = () => store.operations.send(new GetCompareExchangeValuesOperation({ startWith: "rvn-atomic/cluster/" }));
    const [guard] = Object.values(await guards());
    equal("a guard", guard.key, "rvn-atomic/cluster/cyd");
    cyd.name = "Cydney";
    await one.saveChanges();
    const [next] = Object.values(await guards());
    check("the guard goes on", next.index > guard.index, `${next.index} after ${guard.index}`);

    const [left, right] = [session(), session()];
    const [mine, yours] = [await left.load("cluster/cyd", User), await right.load("cluster/cyd", User)];
    mine.name = "mine";
    yours.name = "yours";
    await left.saveChanges();
    await throws("two that have loaded", "ClusterTransactionConcurrencyException", () => right.saveChanges());
    mine.name = "mine again";
    await left.saveChanges();
    const plain = store.openSession();
    equal("the first has saved", (await plain.load("cluster/cyd", User)).name, "mine again");

    const blind = session();
    await blind.store(new User({ name: "blind" }), "cluster/cyd");
    await throws("what was not loaded", "ClusterTransactionConcurrencyException", () => blind.saveChanges());

    const other = session();
    const held = await other.advanced.clusterTransaction.getCompareExchangeValue("names/cyd", User);
    held.value.name = "changed";
    await other.saveChanges();
    equal("a value that was changed", (await store.operations.send(new GetCompareExchangeValueOperation("names/cyd", User))).value.name, "changed");
    const stale = session();
    const before = await stale.advanced.clusterTransaction.getCompareExchangeValue("names/cyd", User);
    await store.operations.send(new PutCompareExchangeValueOperation("names/cyd", new User({ name: "else" }), before.index));
    before.value.name = "stale";
    await throws("a value that was overtaken", "ClusterTransactionConcurrencyException", () => stale.saveChanges());

    const last = session();
    last.advanced.clusterTransaction.deleteCompareExchangeValue("names/cyd", (await store.operations.send(new GetCompareExchangeValueOperation("names/cyd", User))).index);
    await last.delete("cluster/cyd");
    await last.saveChanges();
    equal("deleted with its guard", Object.keys(await guards()).length, 0);
    equal("deleted value", await store.operations.send(new GetCompareExchangeValueOperation("names/cyd", User)) ?? null, null);

    const including = store.openSession();
    await including.store(new User({ name: "names/dan" }), "cluster/dan");
    await including.saveChanges();
    await store.operations.send(new PutCompareExchangeValueOperation("names/dan", new User({ name: "Dan" }), 0));
    const reader = session();
    await reader.load("cluster/dan", { documentType: User, includes: b => b.includeCompareExchangeValue("name") });
    const requests = reader.advanced.numberOfRequests;
    const included = await reader.advanced.clusterTransaction.getCompareExchangeValue("names/dan", User);
    equal("an included value", [included.value.name, reader.advanced.numberOfRequests - requests], ["Dan", 0]);
    store.dispose();
}

// Searches, and what is around them: fragments, suggestions, documents like one, and why an answer has its score.
async function texts() {
    const store = open("Acorns");
    const put = store.openSession();
    for (const [id, title, text] of [["articles/1", "Jays", "A jay hides acorns and finds most of the acorns again"], ["articles/2", "Oaks", "Acorns of <oaks>"], ["articles/3", "Ashes", "The ash has no acorn"]]) {
        await put.store({ title, text, "@metadata": { "@collection": "Articles" } }, id);
    }
    await put.saveChanges();
    const created = await fetch(`${url}/jay/v1/databases/Acorns/indexes`, { method: "PUT", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ collection: "Articles", index: { name: "Words", kind: "text", fields: ["text", "title"] } }) });
    check("an index of words", created.ok, `${created.status} ${await created.text()}`);

    let session = store.openSession();
    let shown, tagged, why;
    const found = await session.query({ collection: "Articles" }).search("text", "acorns").orderByScore()
        .highlight({ fieldName: "text", fragmentLength: 30, fragmentCount: 2 }, h => shown = h)
        .includeExplanations(e => why = e).all();
    equal("searched, the best first", found.map(a => a.id), ["articles/2", "articles/1"]);
    equal("fragments", [shown.getFragments("articles/1"), shown.getFragments("articles/2")], [["A jay hides <b>acorns</b> and finds", "most of the <b>acorns</b> again"], ["<b>Acorns</b> of &lt;oaks&gt;"]]);
    check("explained", why.explanations["articles/2"][0].includes("rarity"), JSON.stringify(why.explanations));
    await session.query({ collection: "Articles" }).search("text", "acorns").selectFields(["title"])
        .highlight({ fieldName: "text", fragmentLength: 30, fragmentCount: 1, preTags: ["<i>"], postTags: ["</i>"] }, h => tagged = h).all();
    equal("fragments of a projection", tagged.getFragments("articles/2"), ["<i>Acorns</i> of &lt;oaks&gt;"]);
    equal("a boost", (await session.query({ collection: "Articles" }).search("text", "acorns").orElse().search("title", "ashes").boost(10).orderByScore().first()).id, "articles/3");

    const meant = await session.query({ collection: "Articles" }).suggestUsing(b => b.byField("text", "acrons")).execute();
    equal("suggestions", meant.text.suggestions, ["acorns", "acorn"]);
    const several = await session.query({ collection: "Articles" })
        .suggestUsing(b => b.byField("text", ["acrons", "oka"]).withDisplayName("meant").withOptions({ pageSize: 1, accuracy: 0.4, sortMode: "Popularity", distance: "Levenshtein" })).execute();
    equal("suggestions for several words", several.meant.suggestions, ["acorns", "oaks"]);

    session = store.openSession();
    const like = await session.query({ collection: "Articles" })
        .moreLikeThis(f => f.usingDocument(b => b.whereEquals("id()", "articles/1")).withOptions({ minimumTermFrequency: 1, minimumDocumentFrequency: 1, minimumWordLength: 4, fields: ["text"] })).all();
    equal("documents like one", like.map(a => a.id), ["articles/2"]);
    const given = await session.query({ collection: "Articles" })
        .moreLikeThis(f => f.usingDocument(JSON.stringify({ text: "ash" })).withOptions({ minimumTermFrequency: 1, minimumDocumentFrequency: 1, fields: ["text"] })).all();
    equal("documents like one that is given", given.map(a => a.id), ["articles/3"]);
    // Words that differ, words near each other, and Lucene's syntax.
    const ids = async query => (await query.all()).map(a => a.id).sort();
    const articles = () => store.openSession().query({ collection: "Articles" });
    equal("lucene", await ids(articles().whereLucene("text", "acorn* AND (jay OR \"has no acorn\"~2) -most")), ["articles/3"]);
    equal("lucene of another field", await ids(articles().whereLucene("text", "title:oak~0.6 OR ash")), ["articles/2", "articles/3"]);
    await throws("a range in lucene", "InvalidQueryException", () => articles().whereLucene("text", "[a TO b]").all());
    let timings;
    await articles().whereLucene("text", "ash").timings(t => timings = t).all();
    check("timings", timings.durationInMs >= 0 && JSON.stringify(timings.timings).includes("uery"), JSON.stringify(timings));
    equal("fuzzy", await ids(articles().whereEquals("title", "Ashse").fuzzy(0.5)), ["articles/3"]);
    equal("fuzzy, less", await ids(articles().whereEquals("title", "Ashse").fuzzy(0.7)), []);
    equal("proximity", await ids(articles().search("text", "jay acorns").proximity(1)), ["articles/1"]);
    equal("proximity, nearer", await ids(articles().search("text", "jay acorns").proximity(0)), []);

    // The same by an index whose fields have options, of fields and of one that computes.
    for (const [name, map] of [["Articles/ByText", "from a in docs.Articles select new { a.title, a.text }"], ["Articles/Computed", "from a in docs.Articles select new { a.title, a.text, size = a.title.Length }"]]) {
        const definition = new IndexDefinition();
        definition.name = name;
        definition.maps = new Set([map]);
        definition.fields = { text: { indexing: "Search", analyzer: "StandardAnalyzer", suggestions: true, termVector: "WithPositionsAndOffsets" }, title: { indexing: "Exact" } };
        await store.maintenance.send(new PutIndexesOperation(definition));
        const stored = await store.maintenance.send(new GetIndexOperation(name));
        equal("options of fields", [stored.fields.text.indexing, stored.fields.text.analyzer, stored.fields.text.suggestions, stored.fields.title.indexing], ["Search", "StandardAnalyzer", true, "Exact"]);
        const of = () => store.openSession().query({ indexName: name });
        let highlights;
        const best = await of().search("text", "the acorns", "AND").orderByScore().highlight({ fieldName: "text", fragmentLength: 30, fragmentCount: 1 }, h => highlights = h).all();
        equal("searched by an index", best.map(a => a.id), ["articles/2", "articles/1"]);
        equal("its fragments", highlights.getFragments("articles/2"), ["<b>Acorns</b> of &lt;oaks&gt;"]);
        equal("found exactly", [await ids(of().whereEquals("title", "jays")), await ids(of().whereEquals("title", "Jays"))], [[], ["articles/1"]]);
        equal("lucene by an index", await ids(of().whereLucene("text", "ash OR jay")), ["articles/1", "articles/3"]);
        equal("suggested by an index", (await of().suggestUsing(b => b.byField("text", "acrons")).execute()).text.suggestions, ["acorns", "acorn"]);
        equal("documents like one, by an index", (await of().moreLikeThis(f => f.usingDocument(b => b.whereEquals("id()", "articles/1"))
            .withOptions({ minimumTermFrequency: 1, minimumDocumentFrequency: 1, minimumWordLength: 4, fields: ["text"] })).all()).map(a => a.id), ["articles/2"]);
        equal("its words", await store.maintenance.send(new GetTermsOperation(name, "text", "h", 3)), ["has", "hides", "jay"]);
        await store.maintenance.send(new DeleteIndexOperation(name));
    }
    for (const a of await session.query({ collection: "Articles" }).all()) await session.delete(a.id);
    await session.saveChanges();
    store.dispose();
}

for (const part of [databases, sessions, ids, concurrency, includes, commands, queries, texts, bulk, changes, attachments, revisions, patches, indexes, computed, places, vectors, compareExchange, clusterWide, many]) {
    try {
        await part();
    } catch (err) {
        check(part.name, false, err.stack ?? err);
    }
}
console.log(`${name}: ${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
