package env

// Warn logs an error that no call can return, if the user has given a logger.
func (e *Env) Warn(message string, err error) {
	if e.Logger != nil {
		e.Logger.Warn(message, "err", err)
	}
}
