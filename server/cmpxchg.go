package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/jaydb/jay"
)

// maxExchangeKeys bounds the keys of one request.
const maxExchangeKeys = 1024

// exchangeParams are the parameters of PUT and DELETE of a compare-exchange value, whose
// key the Go client does not escape.
var exchangeParams = []string{"key", "index", "block", raftParam}

func parseExchangeParams(raw string) (params, error) { return parseRawParams(raw, exchangeParams) }

// exchangeValue is a value in the format of RavenDB's clients.
type exchangeValue struct {
	Object   json.RawMessage
	Metadata json.RawMessage `json:"@metadata,omitempty"`
}

// exchangeItem is a value in a list.
type exchangeItem struct {
	Key   string
	Index uint64
	Value exchangeValue
}

func itemOf(v *jay.CompareExchangeValue) exchangeItem {
	return exchangeItem{v.Key, v.Index, exchangeValue{v.Value, v.Metadata}}
}

// getExchanges returns compare-exchange values by their keys, or by the prefix of them.
// Missing ones are left out.
func (c *call) getExchanges() error {
	keys := c.params.all("key")
	_, named := c.params.find("key")
	prefix, prefixed := c.params.find("startsWith")
	if named && prefixed {
		return badRequest("the request names keys, and a prefix of keys")
	}
	if named {
		if len(keys) == 0 {
			return badRequest("a key must not be empty")
		}
		return c.replyExchanges(func(add func(*jay.CompareExchangeValue) error) error { return c.eachKey(keys, add) })
	}
	start, size, err := c.params.page()
	if err != nil {
		return err
	}
	return c.replyExchanges(func(add func(*jay.CompareExchangeValue) error) error {
		return c.eachExchange(prefix, start, size, add)
	})
}

// eachKey calls add with the values of keys.
func (c *call) eachKey(keys []string, add func(*jay.CompareExchangeValue) error) error {
	if len(keys) > maxExchangeKeys {
		return badRequest("a request has at most %d keys, not %d", maxExchangeKeys, len(keys))
	}
	for _, key := range keys {
		v, err := c.db.CompareExchange().Get(c.ctx, key)
		if errors.Is(err, jay.ErrNotFound) {
			continue
		}
		if err != nil {
			return keyProblem(err)
		}
		if err := add(v); err != nil {
			return err
		}
	}
	return nil
}

// eachExchange calls add with a page of values.
func (c *call) eachExchange(prefix string, start, size int, add func(*jay.CompareExchangeValue) error) error {
	for after := ""; size > 0; {
		page, err := c.db.CompareExchange().List(c.ctx, prefix, after, min(64, start+size))
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
			if err := add(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// replyExchanges replies with the values that list adds, within the bounds of a reply.
func (c *call) replyExchanges(list func(add func(*jay.CompareExchangeValue) error) error) error {
	out, n := []byte(`{"Results":[`), 0
	err := list(func(v *jay.CompareExchangeValue) error {
		text := mustJSON(itemOf(v))
		if int64(len(out)+len(text)) > c.s.opts.MaxReplyBytes {
			return tooLarge("the reply has more than %d bytes, which is the most: ask for a page", c.s.opts.MaxReplyBytes)
		}
		if err := c.take(2 * int64(len(text))); err != nil { // twice, as the buffer grows by copying
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
	return c.text(http.StatusOK, append(out, "]}"...))
}

// exchangeTarget reads the key and the index of a change.
func (c *call) exchangeTarget() (key string, index uint64, err error) {
	if key = c.params.get("key"); key == "" {
		return "", 0, badRequest("key must name a value")
	}
	text := c.params.get("index")
	if text == "" {
		return "", 0, badRequest("index must be the index that the value has, 0 for none")
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return "", 0, badRequest("index must be a whole number that is not negative, not %.100q", text)
	}
	return key, uint64(n), nil
}

// valueOf reads a value as clients send it: an object with the member Object.
func valueOf(text json.RawMessage) (value json.RawMessage, opts []jay.CompareExchangeOption, err error) {
	var v exchangeValue
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&v); err != nil || !json.Valid(text) {
		return nil, nil, badRequest("a compare-exchange value is an object with the member Object, and maybe @metadata")
	}
	if v.Object == nil {
		return nil, nil, badRequest("a compare-exchange value needs the member Object")
	}
	if string(v.Metadata) != "" && string(v.Metadata) != "null" {
		opts = append(opts, jay.CompareExchangeMetadata(v.Metadata))
	}
	return v.Object, opts, nil
}

// putExchange stores a compare-exchange value, if the present one has the index. A
// different index is no error: the reply says that nothing was stored, and has the present
// value.
func (c *call) putExchange() error {
	key, index, err := c.exchangeTarget()
	if err != nil {
		return err
	}
	if len(c.body) == 0 {
		return badRequest("the request needs a body of JSON")
	}
	value, opts, err := valueOf(c.body)
	if err != nil {
		return err
	}
	var b jay.Batch
	b.PutCompareExchange(key, value, index, opts...)
	written, err := c.db.Apply(c.ctx, &b, c.once()...)
	if err != nil {
		return c.replyConflict(err)
	}
	return c.replyExchange(written[0].Etag, c.body, true)
}

// deleteExchange deletes a compare-exchange value, if it has the index. Deleting a missing
// value succeeds.
func (c *call) deleteExchange() error {
	key, index, err := c.exchangeTarget()
	if err != nil {
		return err
	}
	v, err := c.db.CompareExchange().Get(c.ctx, key)
	if errors.Is(err, jay.ErrNotFound) {
		return c.replyExchange(index, nil, true)
	}
	if err != nil {
		return keyProblem(err)
	}
	was := mustJSON(exchangeValue{v.Value, v.Metadata})
	if v.Index != index {
		return c.replyExchange(v.Index, was, false)
	}
	var b jay.Batch
	b.DeleteCompareExchange(key, index)
	if _, err := c.db.Apply(c.ctx, &b, c.once()...); err != nil {
		return c.replyConflict(err)
	}
	return c.replyExchange(index, was, true)
}

// replyConflict replies that the value has another index, with the present value.
func (c *call) replyConflict(err error) error {
	var conflict *jay.CompareExchangeError
	if !errors.As(err, &conflict) {
		return keyProblem(err)
	}
	var value json.RawMessage
	if conflict.Actual != 0 {
		value = mustJSON(exchangeValue{conflict.Value, conflict.Metadata})
	}
	return c.replyExchange(conflict.Actual, value, false)
}

// keyProblem converts the error for a key that is too long to RavenDB's.
func keyProblem(err error) error {
	var invalid *jay.IDError
	if errors.As(err, &invalid) && invalid.Limit > 0 && invalid.Actual > invalid.Limit {
		return &problem{status: http.StatusBadRequest, kind: typeKeyTooBig, message: fmt.Sprintf("the compare-exchange key has %d bytes, and %d are the most", invalid.Actual, invalid.Limit)}
	}
	return err
}

func (c *call) replyExchange(index uint64, value json.RawMessage, successful bool) error {
	return c.text(http.StatusOK, mustJSON(struct {
		Index      uint64
		Value      json.RawMessage
		Successful bool
	}{index, value, successful}))
}
