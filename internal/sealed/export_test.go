package sealed

// HeaderBytes is how many bytes of a file are its header.
const HeaderBytes = headerBytes
