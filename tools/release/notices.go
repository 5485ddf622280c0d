package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licensecheck"
	xmodule "golang.org/x/mod/module"
)

// part is a module that a binary contains.
type part struct {
	path, version, sum string
	texts              []string // of its license files, each once
	licenses           []string // their SPDX identifiers
}

// ours is the prefix of the modules that have Jay's license.
const ours = "github.com/jaydb/jay"

// licenseName matches the files that the licenses of modules are in.
var licenseName = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|copyright|notice|patents)([-._].*)?$`)

// code matches files that licenseName matches and that are code.
var code = regexp.MustCompile(`(?i)\.(go|s|c|h|py|js|sh|tmpl)$`)

// findParts returns the modules of others in a binary, with Go's own library first. Their files are in a module cache.
// A module without a license that is known is an error.
func findParts(info *debug.BuildInfo, cache string) ([]part, error) {
	library := part{path: "std", version: info.GoVersion}
	parts := []part{library}
	folders := []string{goEnv("GOROOT")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Path == ours || strings.HasPrefix(m.Path, ours+"/") {
			continue
		}
		path, err := xmodule.EscapePath(m.Path)
		if err != nil {
			return nil, err
		}
		version, err := xmodule.EscapeVersion(m.Version)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part{path: m.Path, version: m.Version, sum: m.Sum})
		folders = append(folders, filepath.Join(cache, filepath.FromSlash(path)+"@"+version))
	}

	var missing []error
	for i := range parts {
		if err := parts[i].read(folders[i], i == 0); err != nil {
			missing = append(missing, fmt.Errorf("%s %s: %w", parts[i].path, parts[i].version, err))
		}
	}
	return parts, errors.Join(missing...)
}

// read reads the license files below a folder; of Go's own library, those in it.
func (p *part) read(folder string, library bool) error {
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != folder && (library || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !licenseName.MatchString(d.Name()) || code.MatchString(d.Name()):
			return nil
		}
		text, err := os.ReadFile(name)
		if err == nil && !slices.Contains(p.texts, string(text)) {
			p.texts = append(p.texts, string(text))
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, text := range p.texts {
		for _, match := range licensecheck.Scan([]byte(text)).Match {
			if !slices.Contains(p.licenses, match.ID) {
				p.licenses = append(p.licenses, match.ID)
			}
		}
	}
	if len(p.licenses) == 0 {
		return fmt.Errorf("no license that is known is in %s (%d files of licenses)", folder, len(p.texts))
	}
	return nil
}

// notices is a text with the licenses of all parts. Texts that several parts have are printed once.
func notices(parts []part) string {
	var order []string
	owners := make(map[string][]string)
	for _, p := range parts {
		for _, text := range p.texts {
			if owners[text] == nil {
				order = append(order, text)
			}
			owners[text] = append(owners[text], p.path+" "+p.version)
		}
	}
	var b strings.Builder
	b.WriteString("The command jay contains the following software of others. Their licenses follow.\n")
	line := strings.Repeat("=", 78)
	for _, text := range order {
		fmt.Fprintf(&b, "\n%s\n%s\n%s\n\n%s\n", line, strings.Join(owners[text], "\n"), line, strings.TrimSpace(text))
	}
	return b.String()
}

// writeBill writes the bill of materials of a binary: CycloneDX as JSON.
func writeBill(w io.Writer, info *debug.BuildInfo, parts []part, version, target string) error {
	bill := cyclonedx.NewBOM()
	bill.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{
		BOMRef: purl(info.Main.Path, version), Type: cyclonedx.ComponentTypeApplication, Name: "jay", Version: version,
		PackageURL: purl(info.Main.Path, version),
		Properties: &[]cyclonedx.Property{{Name: "jay:system", Value: target}, {Name: "jay:go", Value: info.GoVersion}},
	}}
	var components []cyclonedx.Component
	for _, p := range parts {
		component := cyclonedx.Component{
			BOMRef: purl(p.path, p.version), Type: cyclonedx.ComponentTypeLibrary, Name: p.path, Version: p.version,
			PackageURL: purl(p.path, p.version), Licenses: &cyclonedx.Licenses{},
		}
		for _, id := range p.licenses {
			*component.Licenses = append(*component.Licenses, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: id}})
		}
		if p.sum != "" {
			component.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: p.sum}}
		}
		components = append(components, component)
	}
	bill.Components = &components
	return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bill)
}

// purl is the package URL of a module.
func purl(path, version string) string { return "pkg:golang/" + path + "@" + version }
