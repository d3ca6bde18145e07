import type { ErrorCode, Pet } from '@animal-store/client';
import { QueryClientProvider, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useRef, useState } from 'react';
import { AddPet, FormSkeleton } from './add-pet.js';
import { useAnnounce } from './announcer.js';
import { Brand } from './brand.js';
import { Catalogue } from './catalogue.js';
import { createQueryClient, createStoreClient, TRPCProvider, useTRPC, useTRPCClient } from './connection.js';
import type { Save } from './draft.js';
import { Expiry } from './expiry.js';
import { Gauge } from './gauge.js';
import { Orders } from './orders.js';
import { describeProblem } from './problem.js';
import { ReadOnly } from './read-only.js';
import { useView, Views } from './views.js';
import type { KeyRefusal } from './welcome.js';

/** Only in development: the build contains none of it. */
const Rehearsal = import.meta.env.DEV ? lazy(() => import('./rehearsal.js')) : undefined;

export interface ShopProps {
  readonly apiKey: string;
  /** Called when the service refuses the key: from the start, or because it has ended. */
  readonly onKeyRefused: (refusal: KeyRefusal) => void;
  readonly onLeave: () => void;
}

/** The shop for one API key: client and cache are created and discarded with it. */
export function Shop({ apiKey, onKeyRefused, onLeave }: ShopProps) {
  const rehearsed = useRef<ErrorCode>(undefined);
  const [client] = useState(() => createStoreClient(apiKey, () => rehearsed.current));
  const [queryClient] = useState(() =>
    createQueryClient((error, hasWorked) => {
      if (describeProblem(error).type === 'unknown-key') onKeyRefused(hasWorked ? 'ended' : 'unknown');
    }),
  );
  return (
    <QueryClientProvider client={queryClient}>
      <TRPCProvider trpcClient={client} queryClient={queryClient}>
        <a className="skip-link" href="#catalogue-heading">
          Skip to the catalogue
        </a>
        <header className="masthead">
          <Brand />
          <Gauge limits={client.limits} />
          <button type="button" className="button quiet small" onClick={onLeave}>
            Change key
          </button>
        </header>
        {Rehearsal && (
          <Suspense>
            <Rehearsal
              onChoose={(code) => {
                rehearsed.current = code;
              }}
            />
          </Suspense>
        )}
        <FormAndCatalogue />
      </TRPCProvider>
    </QueryClientProvider>
  );
}

function FormAndCatalogue() {
  const view = useView();
  const [added, setAdded] = useState<readonly Pet[]>([]);
  const changeAdded = (pet: Pick<Pet, 'id' | 'status'>) =>
    setAdded((before) => before.map((each) => (each.id === pet.id ? { ...each, ...pet } : each)));
  const createPet = useCreatePet((pet) => setAdded((before) => [pet, ...before]));
  const problem = createPet.isError ? describeProblem(createPet.error) : undefined;
  const isCutOff = problem?.type === 'unavailable';
  const isRefused = problem?.type === 'forbidden';

  const key = useQuery({
    ...useTRPC().getKey.queryOptions(),
    // After a save that did not reach the service, the key is read again until the service responds.
    refetchInterval: ({ state }) =>
      isCutOff && state.dataUpdatedAt < createPet.submittedAt && (problem.waitSeconds ?? 0) * 1_000,
  });
  const isBack = isCutOff && key.dataUpdatedAt > createPet.submittedAt;
  const scopes = key.data?.scopes ?? [];
  const mayReadOrders = scopes.includes('orders:read');
  const isOrders = view === 'orders' && (mayReadOrders || !key.isFetched);
  const mayWrite = key.data?.scopes.includes('pets:write') ?? true;
  return (
    <main className="columns">
      {!key.isFetched ? (
        <FormSkeleton />
      ) : isRefused || !mayWrite ? (
        <ReadOnly isAfterSave={isRefused} />
      ) : (
        <AddPet isSaving={createPet.isPending} isBack={isBack} onSubmit={createPet.mutateAsync} />
      )}
      <div>
        <Expiry expiresAt={key.data?.expiresAt ?? null} />
        {mayReadOrders && <Views view={view} />}
        {isOrders ? (
          <Orders scopes={scopes} onPetChange={changeAdded} />
        ) : (
          <Catalogue
            saving={createPet.isPending ? createPet.variables.pet : undefined}
            added={added}
            scopes={scopes}
            onChange={changeAdded}
          />
        )}
      </div>
    </main>
  );
}

function useCreatePet(onAdded: (pet: Pet) => void) {
  const client = useTRPCClient();
  const queryClient = useQueryClient();
  const { listCategories } = useTRPC();
  const announce = useAnnounce();
  return useMutation({
    async mutationFn({ pet, categoryName, idempotencyKey }: Save) {
      // First, and it can be repeated: an animal that was saved is never saved again for the sake of a name.
      if (categoryName !== undefined) {
        await client.nameCategory.mutate({ categoryId: pet.categoryId, name: categoryName });
        void queryClient.invalidateQueries(listCategories.pathFilter());
      }
      return client.createPet.mutate(pet, { context: { idempotencyKey } });
    },
    onMutate: ({ pet: { name } }) =>
      announce(
        <>
          Saving <bdi>{name}</bdi>
        </>,
      ),
    onSuccess: (pet) => {
      onAdded(pet);
      announce(
        <>
          <bdi>{pet.name}</bdi> is in the catalogue
        </>,
      );
    },
  });
}
