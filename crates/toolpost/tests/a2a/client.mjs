// The official JavaScript SDK as a client, over each of its transports: a card, a call, a stream, a failure, a refusal.
//
// A2A_TOKEN=… node client.mjs FOLDER_OF_THE_PACKAGES URL

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';

const [packages, base] = process.argv.slice(2);
const token = process.env.A2A_TOKEN;
const require = createRequire(`${packages}/package.json`);
const { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } =
  require('@a2a-js/sdk/client');
const { TaskState, Role } = require('@a2a-js/sdk');

const URI = 'https://mentionable.dev/ns/a2a-tool-events/v0.1';
const fetchImpl = (url, options = {}) => {
  const headers = new Headers(options.headers);
  headers.set('authorization', `Bearer ${token}`);
  return fetch(url, { ...options, headers });
};

const part = (value) => ({ content: { $case: 'data', value }, metadata: undefined, filename: '', mediaType: '' });

function sending(toolName, input) {
  return {
    tenant: '',
    message: {
      messageId: randomUUID(), contextId: '', taskId: '', role: Role.ROLE_USER, metadata: undefined,
      extensions: [URI], referenceTaskIds: [],
      parts: [part({ type: 'tool-call', toolCallId: 'c1', toolName, input })],
    },
    configuration: undefined,
    metadata: undefined,
  };
}

const eventsOf = (message) =>
  message?.role === Role.ROLE_AGENT
    ? message.parts.filter((one) => one.content?.$case === 'data').map((one) => one.content.value)
    : [];

async function check(name, client) {
  const task = await client.sendMessage(sending('read_file', { path: 'lines.txt', limit: 2 }));
  assert.equal(task.status.state, TaskState.TASK_STATE_COMPLETED, name);
  const events = task.history.flatMap(eventsOf);
  assert.deepEqual(events.map((event) => event.type), ['tool-call', 'tool-result'], name);
  assert.equal(task.artifacts.length, 1, name);

  const told = [];
  let last;
  for await (const { payload } of client.sendMessageStream(sending('read_file', { path: 'lines.txt' }))) {
    told.push(payload.$case);
    last = payload.value;
  }
  assert.equal(told[0], 'task', name);
  assert.ok(told.includes('artifactUpdate'), name);
  assert.equal(last.status.state, TaskState.TASK_STATE_COMPLETED, name);

  const failed = await client.sendMessage(sending('read_file', { path: 'absent.txt' }));
  assert.equal(failed.status.state, TaskState.TASK_STATE_FAILED, name);
  assert.equal(failed.history.flatMap(eventsOf).at(-1).type, 'tool-error', name);

  const again = await client.getTask({ tenant: '', id: task.id, historyLength: undefined });
  assert.deepEqual(again.artifacts, task.artifacts, name);
  await assert.rejects(client.cancelTask({ tenant: '', id: task.id, metadata: undefined }), /ended already/, name);
}

const cardResolver = new DefaultAgentCardResolver({ fetchImpl, legacyCompat: { enabled: true } });
const card = await cardResolver.resolve(base);
assert.ok(card.skills.some((skill) => skill.id === 'read_file'));
assert.deepEqual(card.capabilities.extensions.map((extension) => extension.uri), [URI]);

const legacyCompat = { enabled: true };
const ways = {
  '1.0 over JSON-RPC': ['1.0', new JsonRpcTransportFactory({ fetchImpl })],
  '1.0 over REST': ['1.0', new RestTransportFactory({ fetchImpl })],
  '0.3 over JSON-RPC': ['0.3', new JsonRpcTransportFactory({ fetchImpl, legacyCompat })],
};
for (const [name, [version, transport]] of Object.entries(ways)) {
  const supportedInterfaces = card.supportedInterfaces.filter(
    (one) => one.protocolVersion === version && one.protocolBinding === transport.protocolName,
  );
  assert.equal(supportedInterfaces.length, 1, name);
  const factory = new ClientFactory({ transports: [transport], cardResolver });
  await check(name, await factory.createFromAgentCard({ ...card, supportedInterfaces }));
  console.log(`ok: ${name}`);
}
