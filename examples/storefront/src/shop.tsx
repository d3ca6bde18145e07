import type { Pet } from '@animal-store/client';
import { QueryClientProvider, useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { AddPet } from './add-pet.js';
import { useAnnounce } from './announcer.js';
import { Brand } from './brand.js';
import { Catalogue } from './catalogue.js';
import { createQueryClient, createStoreClient, TRPCProvider, useTRPC } from './connection.js';
import { Gauge } from './gauge.js';
import { describeProblem } from './problem.js';
import { ReadOnly } from './read-only.js';

export interface ShopProps {
  readonly apiKey: string;
  /** Called when the service does not know the key. */
  readonly onUnknownKey: () => void;
  readonly onLeave: () => void;
}

/** The shop for one API key: client and cache are created and discarded with it. */
export function Shop({ apiKey, onUnknownKey, onLeave }: ShopProps) {
  const [client] = useState(() => createStoreClient(apiKey));
  const [queryClient] = useState(() =>
    createQueryClient((error) => describeProblem(error).type === 'unknown-key' && onUnknownKey()),
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
        <FormAndCatalogue />
      </TRPCProvider>
    </QueryClientProvider>
  );
}

function FormAndCatalogue() {
  const trpc = useTRPC();
  const announce = useAnnounce();
  const [added, setAdded] = useState<readonly Pet[]>([]);
  const createPet = useMutation(
    trpc.createPet.mutationOptions({
      onMutate: ({ name }) =>
        announce(
          <>
            Saving <bdi>{name}</bdi>
          </>,
        ),
      onSuccess: (pet) => {
        setAdded((before) => [pet, ...before]);
        announce(
          <>
            <bdi>{pet.name}</bdi> is in the catalogue
          </>,
        );
      },
    }),
  );
  const isReadOnly = createPet.isError && describeProblem(createPet.error).type === 'forbidden';
  return (
    <main className="columns">
      {isReadOnly ? (
        <ReadOnly error={createPet.error} />
      ) : (
        <AddPet isSaving={createPet.isPending} onSubmit={createPet.mutateAsync} />
      )}
      <Catalogue saving={createPet.isPending ? createPet.variables : undefined} added={added} />
    </main>
  );
}
