package serve

import "net/http"

// CheckConditions refuses the conditional headers that the route does not heed. As RFC 9110
// has it, If-Modified-Since and If-Range count for a GET only, and If-Unmodified-Since does
// not count beside If-Match.
func (c *Call) CheckConditions() error {
	refuse := func(name string) error {
		return NotSupported("%s %s does not heed %s: without it the request is carried out whatever is stored", c.Route.Method, c.Route.Path, name)
	}
	_, matches := c.Header["If-Match"]
	if matches && c.Route.Heeds&Match == 0 {
		return refuse("If-Match")
	}
	if _, given := c.Header["If-Unmodified-Since"]; given && !matches {
		return refuse("If-Unmodified-Since")
	}
	reads := c.Route.Method == http.MethodGet || c.Route.Method == http.MethodHead
	if _, given := c.Header["If-None-Match"]; given && !reads && c.Route.Heeds&NoneMatch == 0 {
		return refuse("If-None-Match")
	}
	return nil
}
