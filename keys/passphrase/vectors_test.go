package passphrase_test

// vectors are keys that the reference implementation of Argon2 (the command argon2, version 20190702) and OpenSSL (Python's cryptography) compute alike.
var vectors = []struct{ id, passphrase, secret string }{
	{"$argon2id$v=19$m=65536,t=3,p=4$c2l4dGVlbmJ5dGVzc2FsdA", "password", "d89eddd01a2b69757947a624cfbd9c579bc702acad973c83a8e425f9b1f4d1af"},
	{"$argon2id$v=19$m=19456,t=1,p=1$c2l4dGVlbmJ5dGVzc2FsdA", "a", "8ad5e4cb503347da557383b54715333680ae4c4e9901e4f239792cfe6012a216"},
	{"$argon2id$v=19$m=19457,t=2,p=3$U0lYVEVFTmJ5dGVzU0FMVA", "six random words, ü", "9510dee6c1be702eb8f29e3ff4d956086797dfb6145b33ab7d17f050ff2688d8"},
	{"$argon2id$v=19$m=20000,t=2,p=16$MDEyMzQ1Njc4OWFiY2RlZg", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "dd36308a1a9d4750f4dd70a8ec55b41c0debba75e6648286424a30d3b289a873"},
}
