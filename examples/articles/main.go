// Command articles is a search box: it finds articles by what is typed, the best first, and goes through the answers page by page.
// docs/search.md has the guide.
//
//	go run ./examples/articles
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/jaydb/jay"
)

// Article is stored in the collection Articles.
type Article struct {
	ID       string
	Title    string
	Text     string
	Featured bool
}

// Found is an article in a list of answers.
type Found struct {
	Title string
	Score float64
}

// maxFragment is how many characters of a text are shown below a title.
const maxFragment = 50

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "articles-*.jay")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := fill(ctx, db); err != nil {
		return err
	}
	for _, typed := range []string{"falling leaves", `"acorns of oaks"`, "jay* -acorn", "acron~", "acrons"} {
		if err := show(ctx, db, typed); err != nil {
			return err
		}
	}
	err = show(ctx, db, `"never closed`)
	fmt.Println("a mistake:", errors.Is(err, jay.ErrQuery))
	return nil
}

// fill declares the index, and stores some articles.
func fill(ctx context.Context, db *jay.DB) error {
	err := db.EnsureIndex(ctx, "Articles", jay.Index{
		Name:    "Words",
		Kind:    "text",
		Fields:  []string{"Title", "Text"},
		Options: map[string]string{"analyzer": "english", "weights": "3, 1"},
	})
	if err != nil {
		return err
	}
	// Suggestions are whole words, and no stems of a language.
	if err := db.EnsureIndex(ctx, "Articles", jay.Index{Name: "Spelling", Kind: "text", Fields: []string{"Text"}}); err != nil {
		return err
	}
	articles, err := jay.CollectionOf[Article](db)
	if err != nil {
		return err
	}
	for _, a := range []Article{
		{Title: "Why leaves fall", Text: "Trees drop their leaves in autumn, when the days are short."},
		{Title: "Oaks", Text: "The acorns of oaks feed jays. Their leaves stay on the branches for long."},
		{Title: "The cache of a jay", Text: "A jay buries thousands of acorns, and finds most of them again.", Featured: true},
		{Title: "A guide to jays", Text: "Blue, brown and grey ones, and how they call."},
	} {
		if _, err := articles.Insert(ctx, &a); err != nil {
			return err
		}
	}
	return nil
}

// found asks for articles with the words of a search in a title or a text.
func found(db *jay.DB, typed string) jay.Query[jay.Row] {
	english := jay.WithAnalyzer("english") // as the index has it
	q := db.Query("Articles").
		Where(jay.Or(jay.Search("Title", typed, english), jay.Search("Text", typed, english))).
		OrderBy(jay.Score).
		NoScan(). // the index must answer
		Limit(2)  // on a page
	shown := jay.Highlight{Field: "Text", Length: maxFragment}
	return jay.Select[Found](q, "Title", "score() as Score").Highlight(shown).Rows()
}

// show prints the pages of what is found.
func show(ctx context.Context, db *jay.DB, typed string) error {
	fmt.Println(typed)
	shown := 0
	for q, cursor := found(db, typed), ""; ; {
		page, err := q.After(cursor).Page(ctx)
		if err != nil {
			return err
		}
		for _, row := range page.Items {
			var a Found
			if err := json.Unmarshal(row.JSON, &a); err != nil {
				return err
			}
			fmt.Printf("   %.2f  %s\n", a.Score, a.Title)
			for _, fragment := range row.Highlights["Text"] {
				fmt.Printf("         %s\n", fragment)
			}
			shown++
		}
		if cursor = page.Next; cursor == "" {
			if shown == 0 {
				return suggest(ctx, db, typed)
			}
			return nil
		}
		fmt.Println("   next page")
	}
}

// suggest shows a word that was perhaps meant.
func suggest(ctx context.Context, db *jay.DB, word string) error {
	meant, err := db.Query("Articles").UseIndex("Spelling").Suggest(ctx, "Text", word, jay.SuggestOptions{Size: 1})
	if err != nil {
		return err
	}
	for _, s := range meant {
		fmt.Printf("   did you mean %s?\n", s.Word)
	}
	return nil
}
