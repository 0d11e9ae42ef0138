// The workloads hello and echo in Fastify.
import Fastify from 'fastify';

const app = Fastify();

app.get('/', () => 'Hello, world!');

// Told the shape of an answer, Fastify writes it with a serialiser made for it: its own way to be fast.
const receipt = {
  type: 'object',
  properties: { received: { type: 'boolean' }, data: { type: 'object', additionalProperties: true } },
};

app.post('/bench/receive_data', { schema: { response: { 200: receipt } } }, (request) => ({ received: true, data: request.body }));

process.once('SIGTERM', () => void app.close());

await app.listen({ host: process.env.ADDRESS, port: Number(process.env.PORT) });
