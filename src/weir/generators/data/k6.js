import http from 'k6/http';
import { Counter } from 'k6/metrics';

export const options = $options;
const right = $right;
const body = $body;
const parameters = $parameters;
const failures = {};
for (const kind of ['connect', 'timeout', 'reset', 'protocol', 'check']) failures[kind] = new Counter($counter + kind);
http.setResponseCallback(http.expectedStatuses(...right));

// k6 has a number for each kind of failure. Each layer has a range of one or two hundred numbers.
function kindOf(answer) {
  const code = answer.error_code;
  if (answer.status !== 0) {
    return right.some(one => answer.status === one || (answer.status >= one.min && answer.status <= one.max)) ? null : 'check';
  }
  if (code === 1050) return 'timeout';
  if (code === 1220 || code < 1100) return 'reset';
  return code < 1400 ? 'connect' : 'protocol';
}

export function setup() {
  console.log($begins);
}

export default function () {
  const kind = kindOf(http.request($method, $url, body, parameters));
  if (kind !== null) failures[kind].add(1);
}

export function handleSummary(data) {
  return { [$report]: JSON.stringify(data) };
}
