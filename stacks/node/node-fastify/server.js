// Serves the workloads hello and echo with Fastify.
import Fastify from 'fastify';

const app = Fastify();

app.get('/', () => 'Hello, world!');

// With a response schema Fastify writes the response with a serialiser made for this schema, which is faster.
const receipt = {
  type: 'object',
  properties: { received: { type: 'boolean' }, data: { type: 'object', additionalProperties: true } },
};

app.post('/bench/receive_data', { schema: { response: { 200: receipt } } }, (request) => ({ received: true, data: request.body }));

process.once('SIGTERM', () => void app.close());

await app.listen({ host: process.env.ADDRESS, port: Number(process.env.PORT) });
