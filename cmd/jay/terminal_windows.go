package main

// terminalName opens the console of the process.
const terminalName = "CONIN$"
