package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"sync"
	"time"
)

// An invitation is a URL with a ticket, which starts the session of one browser and works
// once. It protects a server on a loopback port, which every user of the machine can
// reach.
const (
	invitationDuration = 15 * time.Minute // validity of a ticket
	maxInvitations     = 100              // open invitations; the oldest are dropped
	invitationPath     = "/jay/v1/invitation"
)

// invitations holds the open invitations, oldest first.
type invitations struct {
	mu   sync.Mutex
	open []invitation // Guarded by mu.
}

type invitation struct {
	ticket  [sha256.Size]byte // its hash
	right   Right
	expires time.Time
}

// accept removes the invitation with a ticket and returns its right. It compares all
// invitations, in constant time.
func (is *invitations) accept(ticket string, now time.Time) (right Right, found bool) {
	hash := sha256.Sum256([]byte(ticket))
	is.mu.Lock()
	defer is.mu.Unlock()
	at := -1
	for i := range is.open {
		if subtle.ConstantTimeCompare(is.open[i].ticket[:], hash[:]) == 1 {
			at = i
		}
	}
	if at < 0 {
		return NoRight, false
	}
	used := is.open[at]
	is.open = slices.Delete(is.open, at, at+1)
	return used.right, now.Before(used.expires)
}

// newInvitation tells the user how to get a new invitation.
const newInvitation = "Press Enter in the terminal of jay studio for a new address, or start it again."
