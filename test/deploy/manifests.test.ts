import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createTemporaryFolder } from '@animal-store/platform/testing';
import { expect, onTestFinished, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { filesOf, STORES } from '../support/operators-files.js';

// biome-ignore lint/suspicious/noExplicitAny: YAML of many kinds; a path that does not exist fails the test
type Manifest = any;

const FOLDER = 'docs/deploy';
const { resources: files }: { resources: string[] } = parse(
  readFileSync(`${FOLDER}/kustomization.yaml`, 'utf8'),
);
const manifests: Manifest[] = files.flatMap((file) =>
  parseAllDocuments(readFileSync(`${FOLDER}/${file}`, 'utf8'), { strict: true }).map((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS();
  }),
);
const find = (kind: string): Manifest => manifests.find((manifest) => manifest.kind === kind);
const { template, selector } = find('Deployment').spec;
const [container] = template.spec.containers;
const job = find('Job');
const pods = [template.spec, job.spec.template.spec];
const compose: Manifest = parse(readFileSync('compose.yaml', 'utf8'), { merge: true });

test('everything has a name of its own kind, which a second apply finds again', () => {
  const names = manifests.map(({ kind, metadata }) => `${kind}/${metadata.name}`);
  expect(names).toHaveLength(9);
  expect(new Set(names).size).toBe(9);
  expect(names.join()).not.toContain('undefined');
});

test.each(STORES)('the manifests and units of $identity.name can be read', (store) => {
  for (const [path, text] of Object.entries(filesOf(store))) {
    if (path.endsWith('.yaml'))
      for (const { errors } of parseAllDocuments(text, { strict: true, merge: true }))
        expect([path, errors]).toEqual([path, []]);
    if (path.endsWith('.service'))
      for (const line of text.split('\n')) expect(line).toMatch(/^(?:$|#|\[\w+\]$|\w+=)/);
  }
});

test('whatever selects pods selects those of the Deployment, and not those of the Job', () => {
  const { labels } = template.metadata;
  const selectors = [
    selector.matchLabels,
    find('Service').spec.selector,
    find('PodDisruptionBudget').spec.selector.matchLabels,
    find('NetworkPolicy').spec.podSelector.matchLabels,
    ...template.spec.topologySpreadConstraints.map((spread: Manifest) => spread.labelSelector.matchLabels),
  ];
  for (const wanted of selectors) {
    expect(labels).toMatchObject(wanted);
    expect(job.spec.template.metadata.labels).not.toMatchObject(wanted);
  }
});

test('whatever names a port, a resource or the image names one that exists', () => {
  const ports = container.ports.map(({ name }: Manifest) => name);
  const { startupProbe, readinessProbe, livenessProbe } = container;
  const named = [
    ...[startupProbe, readinessProbe, livenessProbe].map(({ httpGet }) => httpGet.port),
    ...find('Service').spec.ports.map(({ targetPort }: Manifest) => targetPort),
    ...find('NetworkPolicy').spec.ingress.flatMap((rule: Manifest) =>
      rule.ports.map((p: Manifest) => p.port),
    ),
  ];
  for (const port of named) expect(ports).toContain(port);
  const probes = container.ports.find(({ name }: Manifest) => name === 'probes').containerPort;
  const { data, metadata } = find('ConfigMap');
  expect(data.METRICS_PORT).toBe(String(probes));
  expect(template.metadata.annotations['prometheus.io/port']).toBe(String(probes));
  expect(container.envFrom).toContainEqual({ configMapRef: { name: metadata.name } });
  const { kind, metadata: deployment } = find('Deployment');
  const { scaleTargetRef } = find('HorizontalPodAutoscaler').spec;
  expect(scaleTargetRef).toMatchObject({ kind, name: deployment.name });
  expect(template.spec.serviceAccountName).toBe(find('ServiceAccount').metadata.name);
  expect(job.spec.template.spec.containers[0].image).toBe(container.image);
});

test('no pod has a token for the API of Kubernetes', () => {
  for (const { automountServiceAccountToken } of [find('ServiceAccount'), ...pods])
    expect(automountServiceAccountToken).toBe(false);
});

test('a pod runs as a user without rights, and cannot write, gain capabilities or read more of the secret than files', () => {
  for (const { securityContext, containers, volumes } of pods) {
    expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    for (const { securityContext: own, env, envFrom = [], volumeMounts } of containers) {
      expect(own).toEqual({
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
      });
      expect(JSON.stringify(envFrom)).not.toContain('secret');
      const [{ mountPath, name }] = volumeMounts;
      for (const variable of env) expect(`${variable.value}`).toBe(`${mountPath}/${fileOf(variable.name)}`);
      const { secret } = volumes.find((volume: Manifest) => volume.name === name);
      // Readable for root and the group, which is the service's.
      expect(secret.defaultMode).toBe(0o440);
      expect(securityContext.fsGroup).toBe(1000);
    }
  }
});

/** The key of the secret that a variable names the file of. */
const fileOf = (variable: string) => variable.replace(/_FILE$/, '');

test('what a pod may connect to is named: nothing else, and no port without its peer', () => {
  const policies = manifests.filter(({ kind }) => kind === 'NetworkPolicy');
  for (const { spec } of [find('Deployment'), job]) {
    const { labels } = spec.template.metadata;
    const policy = policies.find(({ spec: { podSelector } }) =>
      Object.entries(podSelector.matchLabels).every(([name, value]) => labels[name] === value),
    );
    expect(policy.spec.policyTypes).toEqual(['Ingress', 'Egress']);
    for (const { to, ports } of policy.spec.egress) {
      expect(to.length).toBeGreaterThan(0);
      expect(ports.length).toBeGreaterThan(0);
    }
  }
});

test('a pod may connect to Redis and to Sentinels, at the ports that they have unless a URL says otherwise', () => {
  const [, sentinelPort] =
    /The port is (\d+) unless stated/.exec(readFileSync('docs/configuration.md', 'utf8')) ?? [];
  const rules: Manifest[] = manifests
    .filter(({ kind }) => kind === 'NetworkPolicy')
    .flatMap(({ spec }) => spec.egress)
    .filter((rule) => JSON.stringify(rule).includes('"redis"'));
  expect(rules.map(({ ports }) => ports.map(({ port }: Manifest) => port))).toEqual([
    [6379, Number(sentinelPort)],
  ]);
});

test('no container of compose.yaml writes to its image, keeps a capability that it need not have, or dumps its memory', () => {
  for (const [name, service] of Object.entries<Manifest>(compose.services)) {
    expect(service, name).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      ulimits: { core: 0 },
    });
    expect(service.cap_add === undefined, name).toBe(name !== 'postgres');
  }
});

/** What make-secrets.sh makes, by name. */
async function makeSecrets(): Promise<Record<string, string>> {
  const folder = await createTemporaryFolder();
  onTestFinished(() => rm(folder, { recursive: true }));
  const secrets = join(folder, 'secrets');
  execFileSync('sh', [`${FOLDER}/make-secrets.sh`, secrets]);
  const names = readdirSync(secrets);
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(secrets, name), 'utf8').trim()]));
}

test('compose.yaml gives secrets as the files that make-secrets.sh makes, without a default, and listens on this machine only', async () => {
  const secrets = await makeSecrets();
  const files = Object.entries<Manifest>(compose.secrets).map(([name, { file }]) => [name, file]);
  expect(files.sort()).toEqual(
    Object.keys(secrets)
      .map((name) => [name, `\${SECRETS:?}/${name}`])
      .sort(),
  );
  const passwords = Object.keys(secrets).filter((name) => name.endsWith('-password'));
  expect(new Set(passwords.map((name) => secrets[name])).size).toBe(4);
  for (const name of [...passwords, 'keys-token']) expect(secrets[name]).toMatch(/^[0-9a-f]{32}$/);
  for (const [name, { environment = {}, secrets: own = [], ports = [] }] of Object.entries<Manifest>(
    compose.services,
  )) {
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
    expect(
      Object.keys(environment).filter((variable) => /(?:URL|PASSWORD)$/.test(variable)),
      name,
    ).toEqual('PUBLIC_URL' in environment ? ['PUBLIC_URL'] : []);
    for (const [variable, path] of Object.entries<string>(environment))
      if (variable.endsWith('_FILE')) expect(own).toContain(path.replace('/run/secrets/', ''));
  }
});

test('Argo CD migrates before it applies the rest, so the Job needs nothing of it, and both tools replace it', () => {
  expect(job.metadata.annotations).toEqual({
    'argocd.argoproj.io/hook': 'PreSync',
    'argocd.argoproj.io/hook-delete-policy': 'BeforeHookCreation',
    'kustomize.toolkit.fluxcd.io/force': 'enabled',
  });
  const { serviceAccountName, containers } = job.spec.template.spec;
  expect(serviceAccountName).toBeUndefined();
  expect(JSON.stringify(containers)).not.toContain('configMap');
});

test('no more than 256 addresses may claim to be any client', () => {
  const [, bits] = find('ConfigMap').data.TRUST_PROXY.split('/');
  expect(Number(bits)).toBeGreaterThanOrEqual(24);
});

test('the image has every script that the service loads, and no other', () => {
  const dockerfile = readFileSync('Dockerfile', 'utf8');
  const copied = /^COPY (scripts\/.+) scripts\/$/m.exec(dockerfile)?.[1]?.split(' ').sort();
  const sources = readFileSync('src/main.ts', 'utf8') + readFileSync('src/cli.ts', 'utf8');
  const imported = [...sources.matchAll(/'(?:\.\.\/)+(scripts\/[^']+)'/g)].map(([, path]) => path);
  expect(copied).toEqual([...new Set(imported)].sort());
});

const roles = readFileSync(`${FOLDER}/roles.sql`, 'utf8');

test('the service runs as a role that owns nothing, and only what migrates has the password of the owner', async () => {
  const [owner, service, keysRole] = [...roles.matchAll(/^CREATE ROLE (\w+) LOGIN/gm)].map(
    ([, name]) => name,
  );
  expect(roles).toContain(`OWNER ${owner};`);
  const { migrate, postgres, ...others } = compose.services;
  const grant = ['dist/cli.js', 'migrate', '--grant-to', service];
  expect(migrate.command).toEqual(grant);
  expect(job.spec.template.spec.containers[0].args).toEqual(grant);
  const secrets = await makeSecrets();
  const userOf = ({ environment }: Manifest) =>
    new URL(secrets[environment.DATABASE_URL_FILE.replace('/run/secrets/', '')] ?? '').username;
  expect(userOf(migrate)).toBe(owner);
  for (const name of ['store-1', 'store-2', 'keys']) expect(userOf(others[name]), name).toBe(service);
  expect(userOf(others['serve-keys'])).toBe(keysRole);
  expect(JSON.stringify(others)).not.toMatch(/owner-|-password/);
  expect(postgres.volumes.join()).toContain('/docker-entrypoint-initdb.d/');
  const secretsOf = ({ volumes }: Manifest) =>
    volumes.flatMap(({ secret }: Manifest) => (secret ? [secret.secretName] : []));
  expect(secretsOf(job.spec.template.spec)).toEqual(['animal-store-migrate']);
  expect(secretsOf(template.spec)).toEqual(['animal-store']);
});

test('what serves keys is off unless it is asked for, has the token as a file and a role of its own, and is hardened like the rest', () => {
  const { profiles, environment, secrets, command, networks } = compose.services['serve-keys'];
  expect(profiles).toEqual(['serve-keys']);
  expect([environment.KEYS_TOKEN_FILE, environment.KEYS_TOKEN]).toEqual([
    '/run/secrets/keys-token',
    undefined,
  ]);
  expect(secrets).toEqual(['keys-database-url', 'keys-token']);
  expect(compose.networks.keys.internal).toBe(true);
  expect(networks).toContain('keys');
  for (const [name, { networks: others = [] }] of Object.entries<Manifest>(compose.services))
    expect(others.includes('keys'), name).toBe(name === 'serve-keys');
  expect(command.join(' ')).toMatch(/^dist\/cli\.js keys serve --port 3001 --host 0\.0\.0\.0$/);

  expect(files).not.toContain('kubernetes-keys.yaml');
  const [deployment, , policy]: Manifest[] = parseAllDocuments(
    readFileSync(`${FOLDER}/kubernetes-keys.yaml`, 'utf8'),
    { strict: true },
  ).map((document) => document.toJS());
  const { spec, metadata } = deployment.spec.template;
  const [keys] = spec.containers;
  expect(keys.image).toBe(container.image);
  expect(keys.securityContext).toEqual(container.securityContext);
  expect(spec.securityContext).toEqual(template.spec.securityContext);
  expect(keys.args.slice(0, 3)).toEqual(['dist/cli.js', 'keys', 'serve']);
  expect(keys.env.map(({ name }: Manifest) => name)).toEqual(['DATABASE_URL_FILE', 'KEYS_TOKEN_FILE']);
  expect(policy.spec.podSelector.matchLabels).toEqual(metadata.labels);
  expect(selector.matchLabels).not.toEqual(metadata.labels);
  for (const { from } of policy.spec.ingress)
    for (const peer of from) expect(peer).toHaveProperty('podSelector.matchLabels');

  const [unit, ofKeys] = ['animal-store@', 'animal-store-keys'].map((name) =>
    readFileSync(`${FOLDER}/${name}.service`, 'utf8'),
  );
  const sandbox = (text = '') =>
    text
      .split('\n')
      .filter((line) =>
        /^(?:Protect|Private|Restrict|System|IPAddress|Cap|NoNew|Dynamic|Lock|UMask)/.test(line),
      );
  expect(sandbox(ofKeys)).toEqual(sandbox(unit));
  expect(sandbox(unit).length).toBeGreaterThan(20);
  expect(ofKeys).toContain('LoadCredential=keys-token:');
});

test('the example of Patroni has the settings that the documents explain, and HAProxy asks where its agent listens', () => {
  const documented = readFileSync('docs/availability.md', 'utf8');
  const patroni = parse(readFileSync(`${FOLDER}/patroni.yaml`, 'utf8'), { strict: true });
  const { postgresql, ...dcs } = patroni.bootstrap.dcs;
  const settings = { ...dcs, ...postgresql, ...postgresql.parameters };
  const explained = [...documented.matchAll(/^\| `(\w+): (\w+)` \|/gm)];
  expect(explained.map(([, name]) => name)).toEqual(
    expect.arrayContaining(['synchronous_mode', 'failsafe_mode']),
  );
  for (const [, name = '', value] of explained) expect([name, `${settings[name]}`]).toEqual([name, value]);
  const [, host, port] = /^ *server a ([\d.:]+) check port (\d+)$/m.exec(documented) ?? [];
  expect([patroni.postgresql.listen, patroni.restapi.listen]).toEqual([
    host,
    `${host?.split(':')[0]}:${port}`,
  ]);
});

test('the example of Patroni asks for the version that the documents ask for', () => {
  const [inExample, inDocument] = [`${FOLDER}/patroni.yaml`, 'docs/availability.md'].map(
    (path) => /Patroni ([\d.]+\d) or later/.exec(readFileSync(path, 'utf8'))?.[1],
  );
  expect(inExample).toMatch(/^\d+\.\d+\.\d+$/);
  expect(inDocument).toBe(inExample);
});
