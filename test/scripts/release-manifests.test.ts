import { expect, test } from 'vitest';

const { findUnitProblems } = await import('../../scripts/release/manifests.js' as string);

test('the check of a release minds what systemd says of our unit, and not of those of other packages', () => {
  const path = '/tmp/x/animal-store@3000.service';
  const own = [
    `${path}:12: Unknown key name 'Restrat' in section 'Service', ignoring.`,
    `${path}.d/10-own.conf:2: Unknown key name 'Wnats' in section 'Unit', ignoring.`,
    'animal-store@3000.service: Command /usr/bin/nod is not executable: No such file or directory',
    'Failed to load something: Invalid argument',
  ];
  const others = [
    '/lib/systemd/system/plymouth-start.service:17: Unit configured to use KillMode=none. This is unsafe.',
    'snapd.service: Command snap is not executable',
    "/etc/systemd/system/basic.target.d/10-local.conf:2: Unknown key name 'Wnats' in section 'Unit', ignoring.",
    "/usr/lib/systemd/system/service.d/10-all.conf:2: Unknown key name 'Wnats' in section 'Unit', ignoring.",
    '',
  ];
  expect(findUnitProblems([...others, ...own, ...others].join('\n'), path)).toEqual(own);
});
