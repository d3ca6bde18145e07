import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The slow files come first, so that none is left at the end while the other workers have nothing to do. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isQuick = ({ moduleId }: TestSpecification) => Number(!moduleId.endsWith('.slow.test.ts'));
    return (await super.sort(files)).toSorted((one, other) => isQuick(one) - isQuick(other));
  }
}
