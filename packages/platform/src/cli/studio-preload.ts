import { subscribe } from 'node:diagnostics_channel';
import type { ServerResponse } from 'node:http';

/*
 * Runs in the process of Prisma Studio, before Studio.
 */

/**
 * Studio's page reports its launch to checkpoint.prisma.io, which no option or variable of Prisma turns off. A policy makes the
 * browser refuse every request that would leave this machine.
 */
const POLICY = "default-src 'self' 'unsafe-inline' data: blob:";

subscribe('http.server.request.start', (message) =>
  (message as { readonly response: ServerResponse }).response.setHeader('Content-Security-Policy', POLICY),
);

/**
 * Studio sends an Error that has a name and a message as it is, and JSON leaves out the message of an Error. Without the
 * message, a refusal by a constraint would be an empty red box.
 */
Object.assign(Error.prototype, {
  toJSON(this: Error) {
    return { ...this, name: this.name, message: this.message };
  },
});

/**
 * Studio would wait for its page to close connections, and outlive the process that started it. With the page, anybody at this
 * machine could go on writing.
 */
for (const event of ['SIGINT', 'SIGTERM', 'SIGHUP', 'disconnect']) process.on(event, () => process.exit(0));
process.channel?.unref();
