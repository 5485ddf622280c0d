package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// Ensure that the replies to changes of attachments have the version that the change has made, and not that of another client who
// writes the document at the same time: a client goes on with it.
func TestBatch_VersionsOfAttachments(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for _, id := range []string{"c/1", "c/2"} {
		h.want(201, "PUT", "/databases/a/docs?id="+id, `{}`)
	}
	h.want(201, "PUT", "/databases/a/attachments?id=c/1&name=f", "aaa")
	var mu sync.Mutex
	theirs := make(map[string]bool) // versions that the others have made; guarded by mu
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				a := h.want(201, "PUT", "/databases/a/docs?id=c/2", fmt.Sprintf(`{"n":[%d,%d]}`, g, i))
				mu.Lock()
				theirs[a.text(t, "ChangeVector")] = true
				mu.Unlock()
			}
		})
	}
	made := make(map[string]string)
	change := func(what, command, member string) {
		a := h.want(201, "POST", "/databases/a/bulk_docs", `{"Commands":[`+command+`]}`)
		made[a.text(t, "Results", 0, member)] = what
	}
	const version = "DocumentChangeVector"
	for i := range 100 {
		change("a copy", fmt.Sprintf(`{"Type":"AttachmentCOPY","Id":"c/1","Name":"f","DestinationId":"c/2","DestinationName":"g%d"}`, i), version)
		change("a rename", fmt.Sprintf(`{"Type":"AttachmentMOVE","Id":"c/2","Name":"g%d","DestinationId":"c/2","DestinationName":"h%d"}`, i, i), version)
		change("a move", fmt.Sprintf(`{"Type":"AttachmentMOVE","Id":"c/2","Name":"h%d","DestinationId":"c/1","DestinationName":"i%d"}`, i, i), version)
		change("a move back", fmt.Sprintf(`{"Type":"AttachmentMOVE","Id":"c/1","Name":"i%d","DestinationId":"c/2","DestinationName":"j%d"}`, i, i), "DestinationDocumentChangeVector")
		change("a deletion", fmt.Sprintf(`{"Type":"AttachmentDELETE","Id":"c/2","Name":"j%d"}`, i), version)
	}
	close(stop)
	wg.Wait()
	equal(t, "versions", len(made), 500)
	for v, what := range made {
		if theirs[v] || v == "" {
			t.Errorf("the reply to %s has the version %q of another client", what, v)
		}
	}

	// A deletion that changes nothing has the version that the document keeps.
	kept := h.want(201, "PUT", "/databases/a/docs?id=c/2", `{}`).text(t, "ChangeVector")
	a := h.want(201, "POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"AttachmentDELETE","Id":"c/2","Name":"none"}]}`)
	equal(t, "version", a.text(t, "Results", 0, version), kept)
}

// Ensure that the reply to the deletion of an attachment has the version that the deletion has made, and not that of another
// client who writes the document at the same time; or the version that the document keeps, or none if there is no document.
func TestAttachments_VersionOfDeletion(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=c/1", `{}`)
	attachment := "/databases/a/attachments?id=c/1&name=f"
	version := h.want(201, "PUT", attachment, "aaa").text(t, "ChangeVector")
	tag := h.want(204, "DELETE", attachment, "", "If-Match", `"`+version+`"`).header.Get("ETag")
	equal(t, "version", tag, h.want(200, "GET", "/databases/a/docs?id=c/1", "").header.Get("ETag"))
	equal(t, "another version", tag != `"`+version+`"`, true)
	equal(t, "version that is kept", h.want(204, "DELETE", attachment, "", "If-Match", tag).header.Get("ETag"), tag)
	equal(t, "version of no document", h.want(204, "DELETE", "/databases/a/attachments?id=none&name=f", "").header.Get("ETag"), "")
	equal(t, "version of a refusal", h.want(409, "DELETE", attachment, "", "If-Match", `"`+version+`"`).header.Get("ETag"), "")

	var wg sync.WaitGroup
	stop := make(chan struct{})
	theirs := make(map[string]bool)
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			theirs[h.want(201, "PUT", "/databases/a/docs?id=c/1", fmt.Sprintf(`{"n":%d}`, i)).text(t, "ChangeVector")] = true
		}
	})
	made := make(map[string]bool)
	for range 100 {
		h.want(201, "PUT", attachment, "aaa")
		made[strings.Trim(h.want(204, "DELETE", attachment, "").header.Get("ETag"), `"`)] = true
	}
	close(stop)
	wg.Wait()
	equal(t, "versions", len(made), 100)
	for v := range made {
		if theirs[v] || v == "" {
			t.Errorf("the reply to a deletion has the version %q of another client", v)
		}
	}
}
