/* pare/publish.h - how every reduction ends: the smaller model and its certificate appear together,
 * proven on what was really written, or nothing appears. */
#ifndef PARE_PUBLISH_H
#define PARE_PUBLISH_H
#include <pare/cert.h>

/* The headline's norm, in which certificates compose. */
#define PARE_NORM_HEADLINE "largest absolute difference over the output entries"
/* The domain of a headline in one English sentence; the same for every reduction, so that links
 * of a chain speak of the same set. NULL when memory is out. */
PARE_MUST_USE const char *pare_domain_text(pare_arena *a, const pare_data_ref *data);

/* What the name of a model has at its end until it is proven: the pid. */
#define PARE_PART_SUFFIX ".part-%ld"

typedef struct pare_publish_opts {
    const char *in_path, *out_path; /* the certificate goes to out_path.cert.json */
    const pare_files *in_files;     /* what the input model was loaded through; NULL: read again */
    bool overwrite;
    double max_error; /* compared with the proven bound; inf = no promise asked */
    uint64_t seed;
    const char *data_path;   /* where `set` came from; NULL: random inputs drawn from `seed` */
    const char *data_sha256; /* pare_files_identity of its loader; NULL: the file is hashed now */
    size_t split, tokens;    /* of a graph; of each random input */
    bool part;               /* the set is pare_inputs_part of the file's, from `first` */
    size_t first;
    const pare_inputs *set; /* what the headline speaks about */
    /* Statements about new inputs of the source of `set`. Only where no input of the set took part
     * in any choice: neither the cut nor its size, nor whether it is written at all (max_error). */
    bool new_inputs;
    const pare_inputs *fitted; /* what the cut was fitted to; NULL: to no input */
    size_t fitted_tokens;      /* both are compared by at most so many tokens; 0: all */
    const pare_prover *prover;
    /* Claims that cost extra work, by kind and parameters: balls, edits, diameters. */
    const pare_claim *ask;
    size_t nask;
    const pare_exec *exec;
} pare_publish_opts;

/* Writes `out` under a temporary name, loads it again, measures both models by the f64 reference,
 * proves by the prover, checks that the two agree within their proven radii, writes the
 * certificate, then renames the model into place. PARE_ERR_PROMISE (nothing written) when proven >
 * max_error; PARE_ERR_VERIFY when the reloaded model is not the one that was meant. `cert` lives in
 * the arena. `out` is freed as soon as it is on disk (the caller's pointer is set to NULL): memory
 * for one copy, not two. */
PARE_MUST_USE pare_status pare_publish(pare_cert *cert, pare_arena *a, const pare_model *in,
                                       pare_model **out, const pare_publish_opts *opts,
                                       pare_err *err);
#endif
