// Reads programs from the standard input, one a line as a JSON string, and writes what each returns, or
// that it throws, as lines of JSON. node_test.go runs it.
'use strict';
const lines = require('fs').readFileSync(0, 'utf8').split('\n');
for (const line of lines.slice(0, -1)) {
  let result;
  try {
    result = new Function(JSON.parse(line))();
  } catch (e) {
    result = 'throws';
  }
  process.stdout.write(JSON.stringify(result) + '\n');
}
