import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';

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

test('everything has a name of its own kind, which a second apply finds again', () => {
  const names = manifests.map(({ kind, metadata }) => `${kind}/${metadata.name}`);
  expect(names).toHaveLength(8);
  expect(new Set(names).size).toBe(8);
  expect(names.join()).not.toContain('undefined');
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
  for (const { automountServiceAccountToken } of [
    find('ServiceAccount'),
    template.spec,
    job.spec.template.spec,
  ])
    expect(automountServiceAccountToken).toBe(false);
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
  const checked = /HEALTHCHECK .*"(scripts\/[^"]+)"/.exec(dockerfile)?.[1];
  expect(copied).toEqual([...new Set([...imported, checked])].sort());
});

const compose: Manifest = parse(readFileSync('compose.yaml', 'utf8'), { merge: true });
const roles = readFileSync(`${FOLDER}/roles.sql`, 'utf8');

test('the service runs as a role that owns nothing, and only what migrates has the password of the owner', () => {
  const [owner, service] = [...roles.matchAll(/^CREATE ROLE (\w+) LOGIN/gm)].map(([, name]) => name);
  expect(roles).toContain(`OWNER ${owner};`);
  const { migrate, postgres, ...others } = compose.services;
  const grant = ['dist/cli.js', 'migrate', '--grant-to', service];
  expect(migrate.command).toEqual(grant);
  expect(job.spec.template.spec.containers[0].args).toEqual(grant);
  const userOf = ({ environment }: Manifest) =>
    new URL(environment.DATABASE_URL.replaceAll(/\$\{[^}]*\}/g, 'x')).username;
  expect(userOf(migrate)).toBe(owner);
  for (const name of ['store-1', 'store-2', 'keys']) expect(userOf(others[name]), name).toBe(service);
  expect(JSON.stringify(others)).not.toMatch(/OWNER_PASSWORD|POSTGRES_PASSWORD/);
  expect(postgres.volumes.join()).toContain('/docker-entrypoint-initdb.d/');
  const secretsOf = ({ envFrom }: Manifest) =>
    envFrom.flatMap(({ secretRef }: Manifest) => (secretRef ? [secretRef.name] : []));
  expect(secretsOf(job.spec.template.spec.containers[0])).toEqual(['animal-store-migrate']);
  expect(secretsOf(container)).toEqual(['animal-store']);
});

test('no password has a default', () => {
  const passwords = readFileSync('compose.yaml', 'utf8').match(/\$\{\w*PASSWORD[^}]*\}/g) ?? [];
  expect(passwords.length).toBeGreaterThan(2);
  for (const password of passwords) expect(password).toMatch(/:\?\}$/);
});
