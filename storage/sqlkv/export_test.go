package sqlkv

// RestrictedTo returns a profile with the restrictions of another one, for PostgreSQL: its limits, its isolation, no relaxed commit. Tests use it, as
// there is no genuine server of the other kind.
func RestrictedTo(p Profile) Profile {
	t := profiles[p]
	t.version, t.key = profiles[Postgres].version, profiles[Postgres].key
	restricted := 100 + p
	profiles[restricted] = t
	return restricted
}
