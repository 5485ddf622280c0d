// Talks to a server through RavenDB's client for Node, and checks what comes back.
//
//     node client.mjs PACKAGE URL
//
// PACKAGE is a name under which package.json installs the client, URL a server whose
// data directory is empty. It prints one line for each check, and exits with 1 if one
// fails.
const [name, url] = process.argv.slice(2);
const module = await import(name);
const raven = module.DocumentStore ? module : module.default;
const {
    DocumentStore, CreateDatabaseOperation, DeleteDatabasesOperation, GetDatabaseNamesOperation, GetStatisticsOperation,
    GetCollectionStatisticsOperation, GetDatabaseRecordOperation, NextIdentityForOperation, SeedIdentityForOperation, GetIdentitiesOperation,
    PutCompareExchangeValueOperation, GetCompareExchangeValueOperation, GetCompareExchangeValuesOperation, DeleteCompareExchangeValueOperation,
    GetBuildNumberOperation, PutClientConfigurationOperation, GetClientConfigurationOperation, PutDocumentCommand, DeleteDocumentCommand,
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
    await throws("deleted twice", "DatabaseDoesNotExistException", () => server.send(new DeleteDatabasesOperation({ databaseNames: ["second"], hardDelete: true })));
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
    equal("get nothing", await send(new GetCompareExchangeValueOperation("emails/none")), null);
    await send(new PutCompareExchangeValueOperation("emails/bob", 7, 0));
    const page = await send(new GetCompareExchangeValuesOperation({ startWith: "emails/", start: 1, pageSize: 5 }));
    equal("a page of values", Object.values(page).map(v => [v.key, v.value]), [["emails/bob", 7]]);
    const some = await send(new GetCompareExchangeValuesOperation({ keys: ["emails/ann", "emails/bob"] }));
    equal("values by key", Object.keys(some).sort(), ["emails/ann", "emails/bob"]);
    equal("delete with an old index", (await send(new DeleteCompareExchangeValueOperation("emails/ann", first.index))).successful, false);
    equal("delete", (await send(new DeleteCompareExchangeValueOperation("emails/ann", third.index))).successful, true);
    equal("deleted", await send(new GetCompareExchangeValueOperation("emails/ann")), null);
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
    equal("deleted value", await store.operations.send(new GetCompareExchangeValueOperation("names/cyd", User)), null);

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

for (const part of [databases, sessions, ids, concurrency, includes, commands, queries, compareExchange, clusterWide, many]) {
    try {
        await part();
    } catch (err) {
        check(part.name, false, err.stack ?? err);
    }
}
console.log(`${name}: ${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
