package keys

// modes says that the system has modes of files.
const modes = false
