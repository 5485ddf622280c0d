// Package lint has only tests: what holds for the repository as a whole. Who may import whom, what the
// packages export, what the modules require, what the race detector leaves out, whether the code in the
// guides compiles, and whether every exported type has an example. Below, package house measures the rooms,
// and package systems checks types for other systems.
package lint
