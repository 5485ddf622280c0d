package jay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/jaydb/jay"
)

func ExampleAttachments() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Put(ctx, "users/ann", []byte(`{"Name":"Ann"}`)); err != nil {
		log.Fatal(err)
	}

	photo := strings.NewReader("pretend that this is a photo") // a file, or the body of a request
	if _, err := db.Attachments("users/ann").Put(ctx, "photo.png", photo, jay.ContentType("image/png")); err != nil {
		log.Fatal(err)
	}
	list, err := db.Attachments("users/ann").List(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(list[0].Name, list[0].ContentType, list[0].Size)

	// Output: photo.png image/png 28
}

func ExampleAttachmentReader() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Put(ctx, "notes/1", []byte(`{}`)); err != nil {
		log.Fatal(err)
	}
	if _, err := db.Attachments("notes/1").Put(ctx, "text", strings.NewReader("Hello, attachments!")); err != nil {
		log.Fatal(err)
	}

	r, err := db.Attachments("notes/1").Get(ctx, "text")
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Seek(7, io.SeekStart); err != nil { // only a part of it
		log.Fatal(err)
	}
	part, err := io.ReadAll(r)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Info().Size, string(part))

	// Output: 19 attachments!
}

func ExampleAttachment() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Put(ctx, "notes/1", []byte(`{}`)); err != nil {
		log.Fatal(err)
	}
	a, err := db.Attachments("notes/1").Put(ctx, "text", strings.NewReader("hello"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.Name, a.Size, a.Hash)

	// Output: text 5 LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=
}

func ExampleAttachmentError() {
	ctx := context.Background()
	db, err := jay.OpenMemory(&jay.Options{MaxAttachmentBytes: 10})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Put(ctx, "notes/1", []byte(`{}`)); err != nil {
		log.Fatal(err)
	}
	_, err = db.Attachments("notes/1").Put(ctx, "text", strings.NewReader("more than ten bytes"))
	var refused *jay.AttachmentError
	if errors.As(err, &refused) {
		fmt.Println(refused.Name, refused.Limit)
	}

	// Output: text 10
}

func ExampleAttachmentStats() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	for _, id := range []string{"notes/1", "notes/2"} {
		if _, err := db.Put(ctx, id, []byte(`{}`)); err != nil {
			log.Fatal(err)
		}
		if _, err := db.Attachments(id).Put(ctx, "text", strings.NewReader("hello")); err != nil {
			log.Fatal(err)
		}
	}
	stats, err := db.Stats(ctx)
	if err != nil {
		log.Fatal(err)
	}
	a := stats.Attachments
	fmt.Println(a.Attachments, "of", a.Bytes, "bytes;", a.Contents, "stored, of", a.StoredBytes)

	// Output: 2 of 10 bytes; 1 stored, of 5
}

func ExampleSessionAttachments() {
	type User struct{ ID, Name string }
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	session := db.OpenSession()
	ann := &User{Name: "Ann"}
	if err := session.Store(ctx, ann); err != nil {
		log.Fatal(err)
	}
	if err := session.Attachments(ann).Store("cv.txt", strings.NewReader("born, went to school"), "text/plain"); err != nil {
		log.Fatal(err)
	}
	if err := session.SaveChanges(ctx); err != nil { // the document and its attachment, or neither
		log.Fatal(err)
	}
	list, err := session.Attachments(ann).List()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ann.ID, list[0].Name)

	// Output: users/1-A cv.txt
}
