// Command alike finds notes that are like a text, by vectors that it makes of words on the spot. A program of yours takes those of a model.
// docs/vectors.md has the guide.
//
//	go run ./examples/alike
package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log"
	"os"
	"strings"

	"github.com/jaydb/jay"
)

// Note is stored in the collection Notes.
type Note struct {
	ID        string
	Topic     string
	Text      string
	Embedding jay.Vector
}

const dimensions = 64

// embed makes the vector of a text: each three letters of a word count at a place of their own. It knows how words are written, and nothing of what they mean.
func embed(text string) jay.Vector {
	v := make(jay.Vector, dimensions)
	for _, word := range strings.Fields(strings.ToLower(text)) {
		word = "_" + strings.Trim(word, ".,;:") + "_"
		for i := 0; i+3 <= len(word); i++ {
			hash := fnv.New32a()
			hash.Write([]byte(word[i : i+3]))
			v[hash.Sum32()%dimensions]++
		}
	}
	return v
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "alike")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := jay.Open(dir+"/notes.jay", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	err = db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Alike", Kind: "vectors", Fields: []string{"Embedding"}, Options: map[string]string{"dimensions": fmt.Sprint(dimensions)}})
	if err != nil {
		return err
	}
	notes, err := jay.CollectionOf[Note](db)
	if err != nil {
		return err
	}
	for _, n := range []Note{
		{Topic: "trees", Text: "The oak drops its acorns in autumn."},
		{Topic: "birds", Text: "Jays bury acorns, and forget where."},
		{Topic: "trees", Text: "Beeches grow in the shade of oaks."},
		{Topic: "food", Text: "Bread of flour, water and salt."},
	} {
		n.Embedding = embed(n.Text)
		if _, err := notes.Insert(ctx, &n); err != nil {
			return err
		}
	}

	to := embed("acorns of an oak")
	fmt.Println("the two that are most alike:")
	for n, err := range notes.Query().OrderBy(jay.Nearest("Embedding", to)).Limit(2).Iter(ctx) {
		if err != nil {
			return err
		}
		fmt.Println(" ", n.Text)
	}
	fmt.Println("of trees, all that are at least a bit alike:")
	for n, err := range notes.Query().Where(jay.Eq("Topic", "trees"), jay.Similar("Embedding", to, 0.2)).Iter(ctx) {
		if err != nil {
			return err
		}
		fmt.Println(" ", n.Text)
	}

	wrong := Note{Text: "a vector of another model", Embedding: jay.Vector{1, 2, 3}}
	var refused *jay.ValueError
	if _, err := notes.Insert(ctx, &wrong); errors.As(err, &refused) {
		fmt.Printf("refused: %s: %s, %s\n", refused.Field, refused.Rule, refused.Value)
	}
	return nil
}
