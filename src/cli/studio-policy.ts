import { subscribe } from 'node:diagnostics_channel';
import type { ServerResponse } from 'node:http';

/*
 * Loaded into the process of Prisma Studio. Its page reports its launch to checkpoint.prisma.io, which no option or
 * variable of Prisma turns off; a policy lets the browser refuse that, and whatever else would leave this machine.
 */
const POLICY = "default-src 'self' 'unsafe-inline' data: blob:";

subscribe('http.server.request.start', (message) => {
  const { response } = message as { response: ServerResponse };
  response.setHeader('Content-Security-Policy', POLICY);
});
