package verbs

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// DueSettings returns the configuration of expiration or refresh, and nil if there is none.
func DueSettings(c *serve.Call, d *serve.Due) (serve.DueSettings, error) {
	disabled := d.Disabled(c.DB)
	var stored serve.DueSettings
	given, err := d.Stored(c.Ctx, c.DB)
	switch {
	case given != nil:
		err = given.Decode(&stored)
	case err == nil:
		var r serve.Record
		if r, _, err = c.Server.Databases.RecordOf(c.Database.Key); err == nil {
			stored, _ = d.InRecord(r.Given) // an older server did not check it
		}
	}
	if err != nil {
		return nil, err
	}
	if stored == nil {
		if disabled {
			return nil, nil
		}
		stored = serve.DueSettings{}
	}
	stored["Disabled"] = disabled
	return stored, nil
}

// RevisionsSettings returns the configuration of the revisions, and nil if there is none.
func RevisionsSettings(db *jay.DB) *RevisionsConfiguration {
	now := db.Revisions().Configuration()
	if now.Default == nil && len(now.Collections) == 0 {
		return nil
	}
	out := &RevisionsConfiguration{Collections: make(map[string]*revisionRule)}
	if now.Default != nil {
		out.Default = ruleOf(*now.Default)
	}
	for name, rule := range now.Collections {
		out.Collections[name] = ruleOf(rule)
	}
	return out
}

// revisionRule is a rule in RavenDB's format.
type revisionRule struct {
	Disabled                             bool
	MinimumRevisionsToKeep               *uint64 `json:",omitempty"`
	MinimumRevisionAgeToKeep             *string `json:",omitempty"`
	PurgeOnDelete                        bool
	MaximumRevisionsToDeleteUponDocument *int64 `json:"MaximumRevisionsToDeleteUponDocumentUpdate,omitempty"` // refused
}

// RevisionsConfiguration is RavenDB's configuration.
type RevisionsConfiguration struct {
	Default     *revisionRule
	Collections serve.Object[*revisionRule]
}

// Rule returns the rule of package jay.
func (r *revisionRule) Rule() (rule jay.RevisionRule, err error) {
	if r.PurgeOnDelete {
		return rule, serve.NotSupported("PurgeOnDelete is not there: POST {D}/admin/revisions/delete removes the revisions of deleted documents")
	}
	if r.MaximumRevisionsToDeleteUponDocument != nil {
		return rule, serve.NotSupported("MaximumRevisionsToDeleteUponDocumentUpdate is not there: a write removes all revisions that the rule does not keep")
	}
	rule.Disabled = r.Disabled
	if r.MinimumRevisionsToKeep != nil {
		rule.Keep = *r.MinimumRevisionsToKeep
	}
	if r.MinimumRevisionAgeToKeep != nil {
		rule.KeepFor, err = parseTimeSpan(*r.MinimumRevisionAgeToKeep)
	}
	return rule, err
}

// ruleOf returns a rule in RavenDB's format.
func ruleOf(rule jay.RevisionRule) *revisionRule {
	r := &revisionRule{Disabled: rule.Disabled}
	if rule.Keep > 0 {
		r.MinimumRevisionsToKeep = &rule.Keep
	}
	if rule.KeepFor > 0 {
		text := formatTimeSpan(rule.KeepFor)
		r.MinimumRevisionAgeToKeep = &text
	}
	return r
}

// parseTimeSpan reads .NET's format of a duration: [days.]hh:mm:ss[.fffffff].
func parseTimeSpan(text string) (time.Duration, error) {
	bad := serve.BadRequest("a duration must be like 14.00:00:00, not %.100q", text)
	days := uint64(0)
	clock := text
	if head, rest, found := strings.Cut(text, "."); found && strings.Contains(rest, ":") {
		n, err := strconv.ParseUint(head, 10, 32)
		if err != nil || n > 100_000 {
			return 0, bad
		}
		days, clock = n, rest
	}
	parts := strings.Split(clock, ":")
	if len(parts) != 3 {
		return 0, bad
	}
	seconds, fraction, _ := strings.Cut(parts[2], ".")
	sum := time.Duration(days) * 24 * time.Hour
	for i, one := range []struct {
		text string
		most uint64
		unit time.Duration
	}{{parts[0], 23, time.Hour}, {parts[1], 59, time.Minute}, {seconds, 59, time.Second}} {
		n, err := strconv.ParseUint(one.text, 10, 16)
		if err != nil || n > one.most && i > 0 || n > 100_000 {
			return 0, bad
		}
		sum += time.Duration(n) * one.unit
	}
	if fraction != "" {
		n, err := strconv.ParseUint((fraction + "0000000")[:7], 10, 32)
		if err != nil || len(fraction) > 7 {
			return 0, bad
		}
		sum += time.Duration(n) * 100
	}
	return sum, nil
}

// formatTimeSpan writes a duration in .NET's format.
func formatTimeSpan(d time.Duration) string {
	text := ""
	if days := d / (24 * time.Hour); days > 0 {
		text = fmt.Sprintf("%d.", days)
	}
	text += fmt.Sprintf("%02d:%02d:%02d", d/time.Hour%24, d/time.Minute%60, d/time.Second%60)
	if f := d % time.Second / 100; f > 0 {
		text += fmt.Sprintf(".%07d", f)
	}
	return text
}
