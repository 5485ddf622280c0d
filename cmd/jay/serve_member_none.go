//go:build nomember

package main

import "log/slog"

func (*memberFlags) run(string, *app, *slog.Logger) (stop func() error, err error) {
	return nil, errLeftOut{part: "a member of etcd", tag: "nomember"}
}
