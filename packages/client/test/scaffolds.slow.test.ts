import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTemporaryFolder } from '@animal-store/platform/testing';
import { afterAll, expect, test } from 'vitest';
import { findPacked, npm, ROOT } from './installed-package.js';

const CREATE = "const client = createClient({ baseUrl: 'http://127.0.0.1:3000', apiKey: 'as_test_…' });";

/** A component that a browser renders */
const VITE_PAGE = `
import { createClient } from '@animal-store/client';
import { useEffect, useState } from 'react';

${CREATE}

export default function App() {
  const [names, setNames] = useState<string[]>([]);
  useEffect(() => {
    client.listPets.query({ status: 'available' }).then((pets) => setNames(pets.map(({ name }) => name)), console.error);
  }, []);
  return <p>{names.join()}</p>;
}
`;

/** A server component: its client is created while the build prerenders the page, its call waits for a request */
const NEXT_PAGE = `
import { createClient } from '@animal-store/client';
import { connection } from 'next/server';
import { Suspense } from 'react';

async function Pets() {
  await connection();
  ${CREATE}
  return <p>{(await client.listPets.query({})).map(({ name }) => name).join()}</p>;
}

export default function Page() {
  ${CREATE}
  return <Suspense fallback={<p>{typeof client.limits.current}</p>}><Pets /></Suspense>;
}
`;

/** Without fonts, which the build of the scaffold's own downloads from Google */
const NEXT_LAYOUT = `
export default function Layout({ children }: { children: React.ReactNode }) {
  return <html lang="en"><body>{children}</body></html>;
}
`;

const folder = await createTemporaryFolder();
afterAll(() => rm(folder, { recursive: true }));

const NEXT_OPTIONS = ['--ts', '--app', '--no-src-dir', '--use-npm', '--no-eslint', '--no-tailwind', '--yes'];

test.each([
  {
    name: 'Vite',
    create: ['create-vite@latest', 'page', '--template', 'react-ts', '--no-interactive'],
    files: { 'src/App.tsx': VITE_PAGE },
    built: /built in/,
  },
  {
    name: 'Next.js',
    create: ['create-next-app@latest', 'page', '--skip-install', ...NEXT_OPTIONS],
    files: { 'app/page.tsx': NEXT_PAGE, 'app/layout.tsx': NEXT_LAYOUT },
    built: /\/_not-found/,
  },
])(
  'a front-end as the newest $name creates it builds with the packed client',
  async ({ name, create, files, built }) => {
    const parent = join(folder, name);
    const page = join(parent, 'page');
    await mkdir(parent);
    await npm(parent, 'exec', '--yes', '--', ...create);
    await npm(page, 'install', '--no-audit', '--no-fund', '--legacy-peer-deps=false', await findPacked(ROOT));
    for (const [path, text] of Object.entries(files)) await writeFile(join(page, path), text);
    const { stdout, stderr } = await npm(page, 'run', 'build');
    expect(stdout + stderr).toMatch(built);
  },
  600_000,
);
