package format

// Parts of the keys of a subscription, behind 's' name 00. Part of the on-disk format.
// Must not change.
const (
	subscriptionDefinition = 'd'
	subscriptionProgress   = 'p'
	subscriptionFailure    = 'f'
)

// SubscriptionFloor begins the name under which a subscription has a floor: see package
// horizon. Part of the on-disk format. Must not change.
const SubscriptionFloor = "subscription/"

// SubscriptionKey returns the key of the definition of a subscription.
func SubscriptionKey(name string) []byte {
	return append(AppendKey(nil, SpaceSubscription, name), subscriptionDefinition)
}

// SubscriptionProgressKey returns the key of the progress of a subscription.
func SubscriptionProgressKey(name string) []byte {
	return append(AppendKey(nil, SpaceSubscription, name), subscriptionProgress)
}

// SubscriptionFailureKey returns the key of a document that has failed; with an empty
// ID, the prefix of all of them.
func SubscriptionFailureKey(name, foldedID string) []byte {
	key := append(AppendKey(nil, SpaceSubscription, name), subscriptionFailure)
	if foldedID == "" {
		return key
	}
	return append(append(key, foldedID...), 0)
}

// IsSubscriptionDefinition reports whether a key of the space is that of a definition.
func IsSubscriptionDefinition(key []byte) bool {
	n := len(key)
	return n > 2 && key[n-1] == subscriptionDefinition && key[n-2] == 0
}
