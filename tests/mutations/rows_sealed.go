package main

// sealing are changes to the encryption of files.
var sealing = []mutation{
	{
		name: "a page does not say whether it is the last one",
		edits: []edit{
			{"internal/sealed/pages.go", "p.place.set(p.pages, last)", "p.place.set(p.pages, 0*last)"},
			{"internal/sealed/pages.go", "\t\tlast = 1\n", "\t\tlast = 0\n"},
		},
		tests: []tests{{"internal/sealed", "TestPages_"}},
	},
	{
		name: "a page does not say where it belongs",
		edits: []edit{
			{"internal/sealed/pages.go", "p.place.set(p.pages, last)", "p.place.set(0, last)"},
			{"internal/sealed/pages.go", "s.place.set(uint64(number), last)", "s.place.set(0, last)"},
		},
		tests: []tests{{"internal/sealed", "TestPages_"}},
	},
	{
		name: "a page of a stream does not say whether it is the last one",
		edits: []edit{
			{"internal/sealed/stream.go", "s.place.set(s.pages, last)", "s.place.set(s.pages, 0*last)"},
			{"internal/sealed/stream.go", "\t\tflag = 1\n", "\t\tflag = 0\n"},
		},
		tests: []tests{{"internal/sealed", "TestStream_"}},
	},
	{
		name: "a page of a stream does not say where it belongs",
		edits: []edit{
			{"internal/sealed/stream.go", "s.place.set(s.pages, last)", "s.place.set(0, last)"},
			{"internal/sealed/stream.go", "s.place.set(uint64(s.page), flag)", "s.place.set(0, flag)"},
		},
		tests: []tests{{"internal/sealed", "TestStream_"}},
	},
	{
		name:  "an encrypted file may take the name of another one",
		edits: []edit{{"internal/sealed/header.go", "\t\tif names[i] == name {\n", "\t\tif true {\n"}},
		tests: []tests{{"internal/sealed", "TestHeader_"}},
	},
	{
		name:  "an encrypted file may be one of another database",
		edits: []edit{{"internal/sealed/header.go", "\tcase DatabaseID(fixed[12:]) != r.database:\n", "\tcase false:\n"}},
		tests: []tests{{"internal/sealed", "TestHeader_"}},
	},
	{
		name:  "a frame is taken twice",
		edits: []edit{{"internal/sealed/frames.go", "!ok || offset < r.size || offset", "!ok || offset"}},
		tests: []tests{{"internal/sealed", "TestFrames_"}},
	},
	{
		name:  "damage to a frame hides the frames after it",
		edits: []edit{{"internal/sealed/frames.go", "\t\tr.noteDamage(at)\n\t\tat++\n", "\t\tr.noteDamage(at)\n\t\treturn nil\n"}},
		tests: []tests{{"internal/sealed", "TestFrames_"}},
	},
	{
		name: "a slot does not say where it belongs",
		edits: []edit{
			{"internal/sealed/slots.go", "s.aead.Seal(s.out, nil, b, place.set(uint64(i), ", "s.aead.Seal(s.out, nil, b, place.set(0, "},
			{"internal/sealed/slots.go", "recordStart+length+sealBytes], place.set(uint64(i), ", "recordStart+length+sealBytes], place.set(0, "},
		},
		tests: []tests{{"internal/sealed", "TestSlots"}},
	},
	{
		name:  "a slot whose key is missing reads as one that was never written",
		edits: []edit{{"internal/sealed/slots.go", "\tif errors.As(err, new(*Damage)) {\n", "\tif err != nil {\n"}},
		tests: []tests{{"internal/sealed", "TestSlots"}},
	},
	{
		name:  "another secret takes the place of a key",
		edits: []edit{{"internal/sealed/ring.go", "found && !bytes.Equal(old.Secret, key.Secret)", "found && false && !bytes.Equal(old.Secret, key.Secret)"}},
		tests: []tests{{"internal/sealed", "TestRing_"}},
	},
	{
		name:  "a writer goes on after a failed write",
		edits: []edit{{"internal/sealed/sealed.go", "\tif b.err != nil {\n", "\tif false {\n"}},
		tests: []tests{{"internal/sealed", "TestWriters_"}},
	},
	{
		name:  "an ingested table has no key for its new name",
		edits: []edit{{"storage/lsm/sealfs.go", "\tif err := s.rebind(oldname, newname); err != nil {\n\t\treturn err\n\t}\n\treturn s.FS.Link(", "\treturn s.FS.Link("}},
		tests: []tests{{"storage/lsm", "TestSealed_Ingest"}},
	},
	{
		name:  "an encrypted table is not synced when it is closed",
		edits: []edit{{"storage/lsm/sealfs.go", "\tif err == nil && f.durable {\n", "\tif err == nil && false {\n"}},
		tests: []tests{{"storage/lsm", "TestSealed_Ingest|TestSealed_PowerCut"}},
	},
	{
		name:  "a transaction can make a database look as if it were encrypted",
		edits: []edit{{"storage/lsm/features.go", "\tneeds &^= encryptedBit(u.known)\n", ""}},
		tests: []tests{{"storage/lsm", "TestSealed_Features"}},
	},
	{
		name:  "a feature that rises takes the word that the database is encrypted out of the format file",
		edits: []edit{{"storage/lsm/features.go", "u.known.Format(before | needs | u.files)", "u.known.Format(before | needs)"}},
		tests: []tests{{"storage/lsm", "TestSealed_Features"}},
	},
	{
		name:  "keys for a database that is not encrypted are ignored",
		edits: []edit{{"storage/lsm/identity.go", "\tcase !found && !says && u.keys == nil:\n", "\tcase !found && !says:\n"}},
		tests: []tests{{"storage/lsm", "TestSealed_Keys"}},
	},
	{
		name:  "a database is opened while its conversion has not ended",
		edits: []edit{{"storage/lsm/identity.go", "\t} else if target != \"\" {\n", "\t} else if false {\n"}},
		tests: []tests{{"storage/lsm", "TestConvert_"}},
	},
	{
		name:  "a database in memory ignores its keys",
		edits: []edit{{"open.go", "\tif how.inMemory && opts.EncryptionKeys != nil && err == nil {\n", "\tif false {\n"}},
		tests: []tests{{".", "TestEncryption_OtherEngines"}},
	},
	{
		name:  "the option of package jay does not reach the engine",
		edits: []edit{{"open.go", "\t\tEncryptionKeys: sealed.From(o.EncryptionKeys)}\n", "\t\tEncryptionKeys: sealed.From[EncryptionKey](nil)}\n"}},
		tests: []tests{{".", "TestEncryption_"}},
	},
	{
		name:  "the backup of an encrypted database is in the clear",
		edits: []edit{{"backup.go", "\t\to.inner.Keys = sealed.From(opened.EncryptionKeys)\n", ""}},
		tests: []tests{{".", "TestBackup_Encrypted"}},
	},
	{
		name:  "a program without the keys of an encrypted database backs it up in the clear",
		edits: []edit{{"internal/recovery/backup.go", "\tif o.Keys == nil && !o.Plain && ", "\tif false && "}},
		tests: []tests{{".", "TestBackup_LookEncrypted"}},
	},
	{
		name:  "a missing key of a backup is found out when the directory is made",
		edits: []edit{{"backup.go", "range names { // a missing", "range names[:0] { // a missing"}},
		tests: []tests{{".", "TestBackup_Encrypted_NoKey"}},
	},
	{
		name:  "backups whose key is missing are removed as old ones",
		edits: []edit{{"backups/keeper.go", " && old && !c.withoutKey() {", " && old {"}},
		tests: []tests{{"backups", "TestKeeper_MissingKey"}},
	},
	{
		name:  "the control file keeps its key in a rotation",
		edits: []edit{{"internal/sealed/slots.go", " || s.keyID != s.ring.current().ID {", " {"}},
		tests: []tests{{"storage/lsm", "TestRotate$"}},
	},
	{
		name:  "the rotation of a table does not replace it",
		edits: []edit{{"storage/lsm/sealfs.go", "\tif err := s.FS.Rename(temporary, name); err != nil {", "\tif err := s.FS.Remove(temporary); err != nil {"}},
		tests: []tests{{"storage/lsm", "TestRotate$"}},
	},
	{
		name:  "a file of keys may be one that other users can read",
		edits: []edit{{"keys/keys.go", "mode.Perm()&0o027 != 0", "mode.Perm()&0o020 != 0"}},
		tests: []tests{{"keys", "TestFile_Mode"}},
	},
	{
		name:  "the first key of a file counts as the newest",
		edits: []edit{{"keys/keys.go", "\treturn all[len(all)-1], nil\n", "\treturn all[0], nil\n"}},
		tests: []tests{{"keys", "TestKeys_Newest"}},
	},
	{
		name:  "a change of the passphrase that was interrupted makes another key",
		edits: []edit{{"keys/passphrase/passphrase.go", `"jay: the salt after " + id`, `"jay: the salt after " + id + rand.Text()`}},
		tests: []tests{{"keys/passphrase", "TestNextID"}},
	},
	{
		name:  "Stats of an encrypted database lists its directory each time",
		edits: []edit{{"storage/lsm/rotate.go", "if last.stillTrue(of) || !r.counting", "if !r.counting"}},
		tests: []tests{{"storage/lsm", "TestRotate_StatsAreCheap"}},
	},
	{
		name:  "lsm: the keys of tables are not asked for when a database is opened",
		edits: []edit{{"storage/lsm/identity.go", "\t\terr = u.checkTables()\n", "\t\t_ = u.checkTables\n"}},
		tests: []tests{{"storage/lsm", "TestSealed_KeyOfTable"}},
	},
	{
		name:  "sealed: a wrong key is damage",
		edits: []edit{{"internal/sealed/header.go", "err = fmt.Errorf(\"%w: %s: the key %q is not the one that the file was encrypted with\", errs.ErrKey, name, ids[found])", "_, err = errs.ErrKey, damage(at, \"the wrapped key is not authentic\")"}},
		tests: []tests{{"internal/sealed", "TestHeader_Keys"}, {"storage/lsm", "TestSealed_LostAndMixedKeys"}},
	},
}
