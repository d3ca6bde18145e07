-- Not together with what uses them: the transaction that adds a value cannot.
ALTER TYPE "plan" ADD VALUE 'trial';
ALTER TYPE "plan" ADD VALUE 'standard';
ALTER TYPE "plan" ADD VALUE 'custom';
