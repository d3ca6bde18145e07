import { connect } from 'node:net';

/** Sends raw bytes, and returns everything received until the other side closes or stays silent. */
export function exchange(port: number, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes, 'latin1'));
    let received = '';
    socket.setTimeout(20_000, () => socket.destroy());
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(received));
  });
}

export interface RawResponse {
  readonly status: number;
  readonly reason: string;
  readonly headers: Headers;
  readonly body: string;
}

/** The responses on a connection, each of which has a Content-Length. */
export function readResponses(received: string): RawResponse[] {
  const responses: RawResponse[] = [];
  let rest = received;
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n');
    const [statusLine = '', ...fields] = rest.slice(0, end).split('\r\n');
    const [, status, reason = ''] = /^HTTP\/1\.1 (\d{3}) (.+)$/.exec(statusLine) ?? [];
    const headers = new Headers(fields.map((field) => field.split(/: (.*)/, 2) as [string, string]));
    const bodyEnd = end + 4 + Number(headers.get('content-length') ?? Number.NaN);
    if (status === undefined || !(bodyEnd <= rest.length)) throw new TypeError(`No response: ${rest}`);
    responses.push({ status: Number(status), reason, headers, body: rest.slice(end + 4, bodyEnd) });
    rest = rest.slice(bodyEnd);
  }
  return responses;
}
