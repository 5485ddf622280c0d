package backup

import (
	"context"
	"io"
)

// Summary is what is known of a backup that was written or read to its end.
type Summary struct {
	Header
	Trailer
	Bytes int64  // of the stream
	KeyID string // of the key with which it is encrypted; "" for none
}

// Summary returns what is known of the stream.
func (r *Reader) Summary() Summary { return Summary{r.Header, r.Trailer, r.Bytes, r.KeyID} }

// Verify reads backups to their end, and checks that each is whole and follows the one
// before it: see VerifyBackup of package jay. It returns those that it has found whole.
func Verify(ctx context.Context, progress func(bytes int64), backups []io.Reader) ([]Summary, error) {
	var whole []Summary
	var before []Header
	read := int64(0)
	for i, r := range backups {
		in, err := verifyOne(ctx, r, i, before, func(n int64) { progress(read + n) })
		if err != nil {
			return whole, err
		}
		before, read = append(before, in.Header), read+in.Bytes
		whole = append(whole, in.Summary())
	}
	return whole, nil
}

func verifyOne(ctx context.Context, r io.Reader, i int, before []Header, progress func(int64)) (*Reader, error) {
	in, err := NewReader(r, i)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if i > 0 {
		if err := CheckChain(before, in.Header); err != nil {
			return nil, err
		}
	}
	for n := 1; ; n++ {
		if n%8192 == 0 {
			progress(in.Bytes)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		if _, err := in.Next(); err == io.EOF {
			progress(in.Bytes)
			return in, nil
		} else if err != nil {
			return nil, err
		}
	}
}
