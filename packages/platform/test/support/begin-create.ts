import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { create, newItem } from '#operations-under-test';

/** Sends the headers of a create; resolves when the service has read them and waits for the body. */
export async function beginCreate(url: string, key: string) {
  const body = JSON.stringify(newItem('Late'));
  const request = httpRequest(`${url}${create.path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'content-length': body.length,
      expect: '100-continue',
    },
  });
  const responded = once(request, 'response');
  responded.catch(() => {});
  request.flushHeaders();
  await once(request, 'continue');
  return async () => {
    request.end(body);
    const [response] = await responded;
    return response.statusCode as number;
  };
}
