import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { z } from 'zod';
import type { Database } from '../../../src/platform/database/client.js';
import { createInsert } from '../../../src/platform/database/inserts.js';
import { readCode } from '../../../src/platform/database/outage.js';
import { createReads } from '../../../src/platform/database/reads.js';
import { table } from '../../../src/platform/database/table.js';
import { ApiError } from '../../../src/platform/errors/api-error.js';
import { createProcedure } from '../../../src/platform/operations/builder.js';
import {
  assignedId,
  date,
  decimal,
  INPUT_ERROR,
  int64,
  text,
} from '../../../src/platform/operations/input.js';
import { answerPage, nestedPageInput, pageOutput } from '../../../src/platform/operations/pagination.js';
import type { Resource } from '../../../src/platform/operations/resource.js';
import {
  existingPath,
  expectInvalidIdsRejected,
  expectUnstorableBodiesRejected,
  ordinaryInit,
} from '../../support/document-requests.js';
import { createChecker, type ListedOperation } from '../../support/openapi-checker.js';
import {
  type Caller,
  createCaller,
  post,
  rpcPath,
  startService,
  type TestService,
} from '../../support/test-service.js';

// Loans of books: a resource whose paths name what its items belong to.

const title = text(1, 100).meta({ description: 'Title of the book' });
const tags = z
  .array(text(1, 20).meta({ description: 'A word' }))
  .max(5)
  .meta({ description: 'Words to find it by' });
const newBook = z
  .object({ title, tags }, { error: INPUT_ERROR })
  .meta({ id: 'NewBook', examples: [{ title: 'Emma', tags: ['novel'] }] });
const book = z
  .object({ id: assignedId(), title, tags })
  .meta({ id: 'Book', examples: [{ id: 1, title: 'Emma', tags: ['novel'] }] });
const bookId = int64().meta({ description: 'Identifier of the book' });
const due = date('When it is due');
const fine = decimal(6, 2, 'What a day of delay costs').meta({
  description: 'What a day of delay costs, as 0.50',
});
const newLoan = z
  .object({ bookId, due, fine }, { error: INPUT_ERROR })
  .meta({ id: 'NewLoan', examples: [{ due: '2026-02-28', fine: '0.50' }] });
const LOAN = { id: 1, bookId: 1, due: '2026-02-28', fine: '0.50' };
const loan = z.object({ id: assignedId(), bookId, due, fine }).meta({ id: 'Loan', examples: [LOAN] });
const loanList = pageOutput(loan).meta({ id: 'Loans', examples: [[LOAN]] });
const loanReference = z.object({ bookId, loanId: int64().meta({ description: 'Identifier of the loan' }) });

type Book = z.output<typeof book>;
type Loan = z.output<typeof loan>;

const bookTable = table<Book, z.output<typeof newBook>>('books', {
  id: 'bigint',
  title: 'text',
  tags: 'text[]',
});
const loanTable = table<Loan, z.output<typeof newLoan>>('loans', {
  id: 'bigint',
  bookId: 'bigint',
  due: 'date',
  fine: 'decimal',
});
const createLibraryStore = (database: Database) => ({
  addBook: createInsert(database, bookTable),
  getBook: createReads(database, bookTable).get,
  lend: createInsert(database, loanTable),
  ...createReads(database, loanTable, { filters: ['bookId'] }),
});
type LibraryStore = ReturnType<typeof createLibraryStore>;

const FOREIGN_KEY_VIOLATION = '23503';
const procedure = createProcedure<{ readonly library: LibraryStore }>();
const meta = { stability: 'beta', scope: 'any' } as const;
const library: Resource<LibraryStore> = {
  name: 'library',
  description: 'Books and their loans',
  createStore: createLibraryStore,
  procedures: {
    addBook: procedure
      .meta({
        ...meta,
        openapi: { method: 'POST', path: '/books', summary: 'Add a book' },
        success: { status: 201, location: ({ id }: Book) => `/books/${id}` },
        idempotent: true,
      })
      .input(newBook)
      .output(book)
      .mutation(({ ctx, input }) => ctx.once((key) => ctx.library.addBook(input, key))),
    lendBook: procedure
      .meta({
        ...meta,
        openapi: { method: 'POST', path: '/books/{bookId}/loans', summary: 'Lend a book' },
        success: { status: 201, location: ({ id, bookId }: Loan) => `/books/${bookId}/loans/${id}` },
        idempotent: true,
      })
      .input(newLoan)
      .output(loan)
      .mutation(({ ctx, input }) =>
        ctx
          .once((key) => ctx.library.lend(input, key))
          .catch((error) => {
            throw readCode(error) === FOREIGN_KEY_VIOLATION ? new ApiError('not_found') : error;
          }),
      ),
    listLoans: procedure
      .meta({
        ...meta,
        openapi: { method: 'GET', path: '/books/{bookId}/loans', summary: 'List loans of a book' },
      })
      .input(nestedPageInput({ bookId }, {}))
      .output(loanList)
      .query(async ({ ctx, input }) => answerPage(ctx, input, await ctx.library.list(input))),
    getLoan: procedure
      .meta({
        ...meta,
        openapi: { method: 'GET', path: '/books/{bookId}/loans/{loanId}', summary: 'Get a loan' },
      })
      .input(loanReference)
      .output(loan)
      .query(async ({ ctx, input: { bookId, loanId } }) => {
        const found = await ctx.library.get(loanId);
        if (found?.bookId !== bookId) throw new ApiError('not_found');
        return found;
      }),
  },
};

const SETUP = `
  DROP TABLE IF EXISTS loans, books;
  CREATE TABLE books (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, title text NOT NULL, tags text[] NOT NULL);
  CREATE TABLE loans (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, book_id bigint NOT NULL REFERENCES books, due date NOT NULL,
    fine decimal(6, 2) NOT NULL);
  CREATE INDEX ON loans (book_id, id);`;

const checker = createChecker([library]);
const findListed = (name: string) =>
  checker.operations.find(({ operationId }) => operationId === name) as ListedOperation;
let service: TestService;
let call: Caller;

beforeAll(async () => {
  service = await startService({ resources: [library] });
  call = createCaller(service);
  const { name } = inject('serviceRole');
  await service.database.pool.query(`${SETUP} GRANT SELECT, INSERT, UPDATE ON books, loans TO ${name}`);
});
afterAll(() => service.close());

test('what belongs to something is created under its path, and listed by it, page by page', async () => {
  const books = [await call('/v1/books', ordinaryInit(findListed('addBook')))];
  books.push(await call('/v1/books', post({ title: 'Persuasion', tags: [] })));
  const [first, second] = books.map(({ body }) => body);
  const lend = (id: number, due: string) => call(`/v1/books/${id}/loans`, post({ due, fine: '0.5' }));
  for (const due of ['2026-02-28', '2026-03-31', '2026-04-30']) {
    const lent = await lend(first.id, due);
    expect([lent.status, lent.body]).toEqual([
      201,
      { id: expect.any(Number), bookId: first.id, due, fine: '0.50' },
    ]);
    await lend(second.id, due);
    const path = lent.headers.get('location')?.replace(/^.*?\/v1/, '/v1') ?? '';
    expect((await call(path)).body).toEqual(lent.body);
  }
  const page = await call(`/v1/books/${first.id}/loans?limit=2`);
  checker.expectDescribed('listLoans', page);
  expect(page.body.map((loan: Loan) => [loan.bookId, loan.due])).toEqual([
    [first.id, '2026-02-28'],
    [first.id, '2026-03-31'],
  ]);
  const next = /<[^>]*(\/v1\/[^>]*)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1] ?? '';
  expect((await call(next)).body).toMatchObject([{ bookId: first.id, due: '2026-04-30' }]);
  const rpc = await call(rpcPath('listLoans', { bookId: first.id, limit: 2 }));
  expect(rpc.body.result.data).toEqual(page.body);
});

test('a parent that does not exist is a 404, and what belongs to another one too', async () => {
  expect((await call('/v1/books/99999/loans', post({ due: '2026-02-28', fine: '1' }))).status).toBe(404);
  const path = await existingPath(checker.operations, findListed('getLoan'), call);
  expect((await call(`/v1${path}`)).status).toBe(200);
  expect((await call(`/v1${path.replace(/books\/\d+/, 'books/99999')}`)).status).toBe(404);
  expect((await call('/v1/books/x/loans')).status).toBe(404);
  expect((await call('/v1/books//loans')).status).toBe(404);
});

test('the checks of all operations know such paths', async () => {
  for (const operation of checker.operations) {
    const path = await existingPath(checker.operations, operation, call);
    const response = await call(`/v1${path}`, ordinaryInit(operation));
    expect([operation.operationId, response.status < 300]).toEqual([operation.operationId, true]);
    checker.expectDescribed(operation.operationId, response);
  }
  await expectInvalidIdsRejected(checker, call);
  await expectUnstorableBodiesRejected(checker, call);
});
