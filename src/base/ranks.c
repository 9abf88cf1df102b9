/* ranks.c - the processes of a computation: one, or those of an mpirun.
 *
 * MPI is optional twice: where it was not installed when pare was built there is no libpare-mpi.so,
 * and where it is, nobody who is not started by an mpirun loads it. A library of our own in between
 * (and not libmpi itself) because the types and constants of MPI differ from one implementation to
 * the next: only a compiler that sees mpi.h knows them. */
#include "ranks_calls.h"
#include "support.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct pare_ranks {
    void *library;
    const ranks_calls *calls;
    size_t size, rank;
};

/* Open MPI; MPICH and its kin; PMIx without either. */
const char *const pare_ranks_signs[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", NULL};

static pare_status mpi_status(const pare_ranks *r, int code, const char *what, pare_err *err)
{
    char why[256] = "";
    if (code == 0) return PARE_OK;
    r->calls->why(why, sizeof why, code);
    return pare_fail(err, PARE_ERR_IO, "MPI: cannot %s: %s", what, why);
}

pare_status pare_ranks_open(pare_ranks **out, pare_err *err)
{
    *out = NULL;
    pare_ranks *const r = calloc(1, sizeof *r);
    if (!r) return pare_no_memory(err);
    /* Global: MPI loads parts of itself later, and they look for its names. */
    r->library = dlopen(RANKS_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
    r->calls = r->library ? dlsym(r->library, RANKS_SYMBOL) : NULL;
    pare_status st;
    if (!r->library)
        st = pare_fail(err, PARE_ERR_IO,
                       "started by an mpirun, but this pare has no MPI (%s): install Open MPI "
                       "and build pare again, or run it without mpirun",
                       dlerror());
    else if (!r->calls || r->calls->version != RANKS_CALLS_VERSION)
        st = pare_fail(err, PARE_ERR_IO, RANKS_LIBRARY ": belongs to another version of pare");
    else
        st = mpi_status(r, r->calls->open(&r->size, &r->rank), "start", err);
    if (st)
        free(r); /* the library stays: what MPI has begun cannot be taken back */
    else
        *out = r;
    return st;
}

void pare_ranks_close(pare_ranks *r)
{
    if (!r) return;
    r->calls->close();
    free(r); /* the library stays, as above */
}

size_t pare_ranks_size(const pare_ranks *r)
{
    return r ? r->size : 1;
}

size_t pare_ranks_rank(const pare_ranks *r)
{
    return r ? r->rank : 0;
}

pare_status pare_ranks_bcast(const pare_ranks *r, void *data, size_t bytes, size_t from,
                             pare_err *err)
{
    PARE_ASSERT(from < pare_ranks_size(r));
    return r ? mpi_status(r, r->calls->bcast(data, bytes, from), "send to all", err) : PARE_OK;
}

pare_status pare_ranks_gather(const pare_ranks *r, void *all, const void *mine, size_t bytes,
                              pare_err *err)
{
    if (r) return mpi_status(r, r->calls->gather(all, mine, bytes), "gather", err);
    if (bytes) memmove(all, mine, bytes);
    return PARE_OK;
}

pare_status pare_ranks_agree(const pare_ranks *r, pare_status mine, pare_err *err)
{
    pare_err own = {0};
    if (!r) return mine;
    if (mine && err) own = *err;
    own.code = mine;
    for (size_t from = 0; from < r->size; from++) {
        pare_err e = own;
        const pare_status st = pare_ranks_bcast(r, &e, sizeof e, from, err);
        if (st) return st;
        if (e.code) return pare_fail(err, e.code, "%s", e.msg);
    }
    return PARE_OK;
}

pare_status pare_ranks_barrier(const pare_ranks *r, pare_err *err)
{
    return r ? mpi_status(r, r->calls->barrier(), "wait for all", err) : PARE_OK;
}
