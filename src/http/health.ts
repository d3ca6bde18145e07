import type { FastifyInstance } from 'fastify';

export interface HealthOptions {
  /** Resolves when the database answers and its schema is the one that this service was built for. */
  readonly checkDatabase: () => Promise<void>;
}

/** Probes for whoever runs the service: is the process alive, and can it serve. Neither needs a key. */
export function registerHealth(app: FastifyInstance, { checkDatabase }: HealthOptions): void {
  app.get('/health/live', async () => ({ status: 'ok' }));

  app.get('/health/ready', async (request, reply) => {
    try {
      await checkDatabase();
      return { status: 'ok', database: 'ok' };
    } catch (error) {
      request.log.warn({ err: error }, 'not ready: the database cannot be used');
      return reply.code(503).send({ status: 'unavailable', database: 'unavailable' });
    }
  });
}
