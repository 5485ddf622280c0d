package raven

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// exchangeRoutes are the endpoints of compare-exchange values.
var exchangeRoutes = []*serve.Route{
	{Method: "GET", Path: "{D}/cmpxchg", Run: getExchanges, Agreed: true, Timed: true, Lazy: true, Takes: "key* pageSize start startsWith"},
	{Method: "PUT", Path: "{D}/cmpxchg", Run: putExchange, Agreed: true, Body: true, Once: true, Params: parseExchangeParams, Takes: "index key"},
	{Method: "DELETE", Path: "{D}/cmpxchg", Run: deleteExchange, Agreed: true, Once: true, Params: parseExchangeParams, Takes: "index key"},
}

// maxExchangeKeys bounds the keys of one request.
const maxExchangeKeys = 1024

// exchangeParams are the parameters of PUT and DELETE of a compare-exchange value, whose
// key the Go client does not escape.
var exchangeParams = []string{"key", "index", "block", serve.RaftParam}

func parseExchangeParams(raw string) (serve.Params, error) {
	return serve.ParseRawParams(raw, exchangeParams)
}

// exchangeValue is a value in the format of RavenDB's clients.
type exchangeValue struct {
	Object   json.RawMessage
	Metadata json.RawMessage `json:"@metadata,omitempty"`
}

// exchangeItem is a value in a list.
type exchangeItem struct {
	Key   string
	Index int64 // -1 for a missing one
	Value *exchangeValue
}

func itemOf(v *jay.CompareExchangeValue) exchangeItem {
	return exchangeItem{v.Key, int64(v.Index), &exchangeValue{v.Value, v.Metadata}}
}

// getExchanges returns compare-exchange values by their keys, or by the prefix of them.
// Of several keys, the missing ones have no value; a single one that is missing is 404.
func getExchanges(c *serve.Call) error {
	keys := c.Params.All("key")
	_, named := c.Params.Find("key")
	prefix, prefixed := c.Params.Find("startsWith")
	if named && prefixed {
		return serve.BadRequest("the request names keys, and a prefix of keys")
	}
	if named {
		if len(keys) == 0 {
			return serve.BadRequest("a key must not be empty")
		}
		if err := c.Params.Alone("key", "start", "pageSize"); err != nil {
			return err
		}
		return replyKeys(c, keys)
	}
	start, size, err := c.Params.Page()
	if err != nil {
		return err
	}
	return replyExchanges(c, func(add func(exchangeItem) error) error {
		return eachExchange(c, prefix, start, size, add)
	})
}

// replyKeys replies with the values of keys.
func replyKeys(c *serve.Call, keys []string) error {
	if len(keys) > maxExchangeKeys {
		return serve.BadRequest("a request has at most %d keys, not %d", maxExchangeKeys, len(keys))
	}
	found := false
	if err := replyExchanges(c, func(add func(exchangeItem) error) error {
		for _, key := range keys {
			v, err := c.DB.CompareExchange().Get(c.Ctx, key)
			item := exchangeItem{Key: key, Index: -1}
			switch {
			case err == nil:
				item, found = itemOf(v), true
			case !errors.Is(err, jay.ErrNotFound):
				return keyProblem(err)
			}
			if err := add(item); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if len(keys) == 1 && !found {
		return c.Empty(http.StatusNotFound)
	}
	return nil
}

// eachExchange calls add with a page of values.
func eachExchange(c *serve.Call, prefix string, start, size int, add func(exchangeItem) error) error {
	for after := ""; size > 0; {
		page, err := c.DB.CompareExchange().List(c.Ctx, prefix, after, min(64, start+size))
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		after = page[len(page)-1].Key
		skip := min(start, len(page))
		start -= skip
		for _, v := range page[skip:] {
			if size == 0 {
				return nil
			}
			size--
			if err := add(itemOf(v)); err != nil {
				return err
			}
		}
	}
	return nil
}

// replyExchanges replies with the values that list adds, within the bounds of a reply.
func replyExchanges(c *serve.Call, list func(add func(exchangeItem) error) error) error {
	out, n := []byte(`{"Results":[`), 0
	err := list(func(item exchangeItem) error {
		text := serve.MustJSON(item)
		if int64(len(out)+len(text)) > c.Server.Options.MaxReplyBytes {
			return serve.TooLarge("the reply has more than %d bytes, which is the most: ask for a page", c.Server.Options.MaxReplyBytes)
		}
		if err := c.Take(2 * int64(len(text))); err != nil { // twice, as the buffer grows by copying
			return err
		}
		if n++; n > 1 {
			out = append(out, ',')
		}
		out = append(out, text...)
		return nil
	})
	if err != nil {
		return err
	}
	return c.Text(http.StatusOK, append(out, "]}"...))
}

// exchangeTarget reads the key and the index of a change.
func exchangeTarget(c *serve.Call) (key string, index uint64, err error) {
	if key = c.Params.Get("key"); key == "" {
		return "", 0, serve.BadRequest("key must name a value")
	}
	text := c.Params.Get("index")
	if text == "" {
		return "", 0, serve.BadRequest("index must be the index that the value has, 0 for none")
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return "", 0, serve.BadRequest("index must be a whole number that is not negative, not %.100q", text)
	}
	return key, uint64(n), nil
}

// valueOf reads a value as clients send it: an object with the member Object.
func valueOf(text json.RawMessage) (value json.RawMessage, opts []jay.CompareExchangeOption, err error) {
	var v exchangeValue
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&v); err != nil || !json.Valid(text) {
		return nil, nil, serve.BadRequest("a compare-exchange value is an object with the member Object, and maybe @metadata")
	}
	if v.Object == nil {
		return nil, nil, serve.BadRequest("a compare-exchange value needs the member Object")
	}
	if string(v.Metadata) != "" && string(v.Metadata) != "null" {
		opts = append(opts, jay.CompareExchangeMetadata(v.Metadata))
	}
	return v.Object, opts, nil
}

// putExchange stores a compare-exchange value, if the present one has the index. A
// different index is no error: the reply says that nothing was stored, and has the present
// value.
func putExchange(c *serve.Call) error {
	key, index, err := exchangeTarget(c)
	if err != nil {
		return err
	}
	if len(c.Body) == 0 {
		return serve.BadRequest("the request needs a body of JSON")
	}
	if err := c.Take(4 * int64(len(c.Body))); err != nil { // the decoder's buffer, the value, and its copy in the reply
		return err
	}
	value, opts, err := valueOf(c.Body)
	if err != nil {
		return err
	}
	var b jay.Batch
	b.PutCompareExchange(key, value, index, opts...)
	written, err := c.DB.Apply(c.Ctx, &b, c.Once()...)
	if err != nil {
		return replyConflict(c, err)
	}
	return replyExchange(c, written[0].Etag, c.Body, true)
}

// deleteExchange deletes a compare-exchange value, if it has the index. Deleting a missing
// value succeeds.
func deleteExchange(c *serve.Call) error {
	key, index, err := exchangeTarget(c)
	if err != nil {
		return err
	}
	v, err := c.DB.CompareExchange().Get(c.Ctx, key)
	if errors.Is(err, jay.ErrNotFound) {
		return replyExchange(c, index, nil, true)
	}
	if err != nil {
		return keyProblem(err)
	}
	was := serve.MustJSON(exchangeValue{v.Value, v.Metadata})
	if v.Index != index {
		if c.RequestID == "" || index == 0 {
			return replyExchange(c, v.Index, was, false)
		}
		was = nil // unless the call was carried out before, the commit refuses it
	}
	var b jay.Batch
	b.DeleteCompareExchange(key, index)
	if _, err := c.DB.Apply(c.Ctx, &b, c.Once()...); err != nil {
		return replyConflict(c, err)
	}
	return replyExchange(c, index, was, true)
}

// replyConflict replies that the value has another index, with the present value.
func replyConflict(c *serve.Call, err error) error {
	var conflict *jay.CompareExchangeError
	if !errors.As(err, &conflict) {
		return keyProblem(err)
	}
	var value json.RawMessage
	if conflict.Actual != 0 {
		value = serve.MustJSON(exchangeValue{conflict.Value, conflict.Metadata})
	}
	return replyExchange(c, conflict.Actual, value, false)
}

// keyProblem converts the error for a key that is too long to RavenDB's.
func keyProblem(err error) error {
	var invalid *jay.IDError
	if errors.As(err, &invalid) && invalid.Limit > 0 && invalid.Actual > invalid.Limit {
		return &serve.Problem{Status: http.StatusBadRequest, Kind: serve.TypeKeyTooBig, Message: fmt.Sprintf("the compare-exchange key has %d bytes, and %d are the most", invalid.Actual, invalid.Limit)}
	}
	return err
}

func replyExchange(c *serve.Call, index uint64, value json.RawMessage, successful bool) error {
	return c.Text(http.StatusOK, serve.MustJSON(struct {
		Index      uint64
		Value      json.RawMessage
		Successful bool
	}{index, value, successful}))
}
