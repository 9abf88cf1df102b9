/* publish.c - the end of every reduction: write, load again, measure, prove, compare, and only then
 * rename into place. A folder has its certificate in it: one rename moves both. */
#include "base/support.h"
#include "conformal.h"
#include "prove.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Shares of the time of a certificate, for its progress. */
enum { PROVING = 96, MEASURING = 4 };

const char *pare_domain_text(pare_arena *a, const pare_data_ref *data)
{
    if (strcmp(data->kind, "part") == 0) {
        char most[64] = "";
        if (data->tokens)
            snprintf(most, sizeof most, ", its first %zu tokens at most", data->tokens);
        if (data->numbers && data->count == 1)
            return pare_sprintf(a, "one input of the data file, drawn by the seed%s", most);
        if (data->numbers)
            return pare_sprintf(a, "each of %zu inputs of the data file, drawn by the seed%s",
                                data->count, most);
        if (data->count == 1)
            return pare_sprintf(a, "input %zu of the data file%s", data->first, most);
        return pare_sprintf(a, "each of inputs %zu to %zu of the data file%s", data->first,
                            data->first + data->count - 1, most);
    }
    if (data->path && data->count == 1)
        return pare_sprintf(a, "the one input in the data file (split %zu)", data->split);
    if (data->path)
        return pare_sprintf(a, "the %zu inputs in the data file (split %zu)", data->count,
                            data->split);
    return pare_sprintf(a, "the %zu random inputs of %zu tokens drawn from the seed", data->count,
                        data->tokens);
}

typedef struct paths {
    const char *out, *cert; /* without a slash at the end */
    char *temp, *cert_temp;
    char *old; /* the certificate that is being replaced, until its model is replaced as well */
    /* What paths in the certificate are relative to. It need not exist, but its folder does: that
     * of the temporary certificate gives the same answers. */
    const char *base;
    uint64_t weights; /* bytes of those that are written */
} paths;

char *pare_cert_path(pare_arena *a, const char *out, bool folder)
{
    size_t n = strlen(out);
    while (folder && n > 1 && out[n - 1] == '/') n--;
    return pare_sprintf(a, "%.*s%s.cert.json", (int)n, out, folder ? "/pare" : "");
}

static pare_status make_paths(paths *p, pare_arena *a, const pare_publish_opts *o, pare_err *err)
{
    const char *const end = o->folder ? "/pare.cert.json" : ".cert.json";
    const long pid = (long)getpid();
    p->cert = pare_cert_path(a, o->out_path, o->folder);
    p->out = p->cert ? pare_strndup(a, p->cert, strlen(p->cert) - strlen(end)) : NULL;
    if (!p->out) return pare_no_memory(err);
    p->temp = pare_sprintf(a, "%s" PARE_PART_SUFFIX, p->out, pid);
    p->old = pare_sprintf(a, "%s.%ld-old.tmp", p->cert, pid);
    p->cert_temp = o->folder ? pare_sprintf(a, "%s" PARE_PART_SUFFIX "%s", p->out, pid, end)
                             : pare_sprintf(a, "%s" PARE_PART_SUFFIX, p->cert, pid);
    p->base = o->folder ? p->cert_temp : p->cert;
    return p->temp && p->old && p->cert_temp ? PARE_OK : pare_no_memory(err);
}

/* The prover's figure and that of the f64 reference are both within their proven radii of the exact
 * largest difference. */
static pare_status check_against_reference(const pare_cert *c, double reference, pare_err *err)
{
    const double radii = c->f64_radius + c->measured_radius + 0x1p-50 * reference;
    if (fabs(reference - c->measured) > radii)
        return pare_fail(err, PARE_ERR_VERIFY,
                         "self-check: the f64 reference measures %.9g, the prover %.9g, further "
                         "apart than their proven radii (%.3g): a fault in pare",
                         reference, c->measured, radii);
    if (c->measured > c->proven + c->measured_radius)
        return pare_fail(
            err, PARE_ERR_VERIFY,
            "self-check: measured %.9g is above the proven bound %.9g: a fault in pare",
            c->measured, c->proven);
    return PARE_OK;
}

/* What the input model is: by the files it was loaded from, or loaded anew for it. */
static pare_status describe_input(pare_file_ref *out, pare_arena *a, const pare_model *in,
                                  const pare_publish_opts *o, const char *cert, pare_err *err)
{
    if (o->in_files) return pare_file_ref_make(out, a, cert, o->in_path, o->in_files, in, err);
    pare_model *again = NULL;
    pare_files *const files = pare_files_new();
    if (!files) return pare_no_memory(err);
    pare_status st = pare_model_load_as(&again, o->in_path, &in->read_as, files, err);
    if (!st) st = pare_file_ref_make(out, a, cert, o->in_path, files, in, err);
    pare_files_free(files);
    pare_model_free(again);
    return st;
}

bool pare_compare_files(uint64_t file_bytes)
{
    return file_bytes >= 1000000;
}

/* What was written, `bytes` in the files that a loader reads, beside what came in. */
static pare_status check_smaller(const pare_model *in, uint64_t bytes, const pare_publish_opts *o,
                                 const paths *p, pare_err *err)
{
    const uint64_t file_in =
        o->in_files ? pare_files_bytes(o->in_files) : pare_path_bytes(o->in_path);
    const bool by_file = pare_compare_files(file_in);
    const uint64_t before = by_file ? file_in : pare_model_size(in, 1, 0).bytes;
    const uint64_t after = by_file ? bytes : p->weights;
    if (after < before) return PARE_OK;
    return pare_fail(err, PARE_ERR_PROMISE,
                     "the result is not smaller than %s: %" PRIu64 " -> %" PRIu64
                     " bytes%s; nothing was written; cut more, or set allow_larger",
                     o->in_path, before, after, by_file ? "" : " of weights");
}

static pare_status describe_output(pare_file_ref *out, pare_model **m, pare_arena *a,
                                   const pare_model *in, const pare_publish_opts *o, const paths *p,
                                   pare_err *err)
{
    pare_files *const files = pare_files_new();
    if (!files) return pare_no_memory(err);
    pare_status st = pare_model_load_as(m, p->temp, NULL, files, err);
    if (!st && o->must_shrink) st = check_smaller(in, pare_files_bytes(files), o, p, err);
    if (!st) st = pare_file_ref_make(out, a, p->base, p->temp, files, *m, err);
    pare_files_free(files);
    if (st || o->folder) return st;
    /* The bytes are those of the temporary file; the name is the final one. */
    out->path = pare_path_relative(a, p->cert, p->out);
    const char *const slash = strrchr(p->out, '/');
    out->files[0].name = pare_strdup(a, slash ? slash + 1 : p->out);
    return out->path && out->files[0].name ? PARE_OK : pare_no_memory(err);
}

static pare_status describe_data(pare_data_ref *out, pare_arena *a, const pare_publish_opts *o,
                                 const char *cert, pare_err *err)
{
    char now[PARE_SHA256_HEX] = "";
    const bool unknown = o->data_path && !o->data_sha256;
    pare_status st = unknown ? pare_sha256_file(now, o->data_path, err) : PARE_OK;
    if (!st)
        st = pare_data_ref_make(out, a, cert, o->data_path, unknown ? now : o->data_sha256,
                                o->split, o->tokens, o->set, err);
    if (st) return st;
    out->column = o->column;
    if (o->part) {
        out->kind = "part";
        out->numbers = o->numbers;
        out->tokens = o->tokens;
    }
    /* With max_error the held-out inputs decide whether the model is written: nothing may then be
     * claimed about new inputs. */
    if (!o->new_inputs || !o->data_path || o->max_error < INFINITY) return PARE_OK;
    static const pare_inputs none = {0};
    st = pare_input_hashes_make(&out->fitted, a, o->fitted ? o->fitted : &none, o->fitted_tokens,
                                err);
    if (!st) st = pare_input_hashes_make(&out->heldout, a, o->set, o->fitted_tokens, err);
    out->candidates = 1;
    return st ? st : pare_heldout_check(out, a, o->set, err);
}

static pare_status fill_references(pare_cert *cert, pare_model **out, pare_arena *a,
                                   const pare_model *in, const pare_publish_opts *o, const paths *p,
                                   pare_err *err)
{
    *cert = (pare_cert){.reduction = o->prover->reduction, .seed = o->seed, .evidence = true};
    cert->proven = cert->measured = cert->measured_radius = cert->f64_radius = NAN;
    pare_status st = describe_input(&cert->input, a, in, o, p->base, err);
    if (!st) st = describe_output(&cert->output, out, a, in, o, p, err);
    if (!st) st = describe_data(&cert->data, a, o, p->base, err);
    /* The claims that were asked for, not proven yet. */
    for (size_t i = 0; !st && i < o->nask; i++) st = pare_cert_add(cert, a, o->ask[i], err);
    return st;
}

static pare_status certify(pare_cert *cert, pare_arena *a, const pare_model *in,
                           const pare_publish_opts *o, const paths *p, pare_err *err)
{
    pare_model *again = NULL;
    double reference = NAN;
    pare_status st = fill_references(cert, &again, a, in, o, p, err);
    const pare_cert asked = *cert;
    cert->nclaims = cert->claims_capacity = 0;
    cert->claims = NULL;
    pare_steps steps = pare_steps_of(o->exec, PROVING + MEASURING);
    const pare_exec *exec = pare_step(&steps, NULL, PROVING);
    if (!st) st = o->prover->prove(cert, a, &asked, in, again, o->set, exec, err);
    exec = pare_step(&steps, "measure", MEASURING);
    if (!st) st = pare_measure(&reference, in, again, o->set, exec, err);
    if (!st) st = check_against_reference(cert, reference, err);
    pare_model_free(again);
    if (!st) st = pare_cert_inflate(cert, err);
    if (!st && !(cert->proven <= o->max_error)) {
        char proven[40];
        return pare_fail(
            err, PARE_ERR_PROMISE,
            "the proven bound is %s, larger than the %g that was asked for; nothing was written",
            pare_ub_format(proven, (pare_ub){cert->proven}, 3), o->max_error);
    }
    return st;
}

/* Gives the present certificate a second name, or where the file system has no links another one.
 * *kept: there is one. */
static pare_status keep_old(bool *kept, const paths *p, pare_err *err)
{
    unlink(p->old); /* of a process of our number that was killed */
    *kept = link(p->cert, p->old) == 0;
    if (*kept || errno == ENOENT) return PARE_OK;
    *kept = rename(p->cert, p->old) == 0;
    if (*kept) return PARE_OK;
    return pare_fail(err, PARE_ERR_IO, "%s: cannot be replaced: %s", p->cert, strerror(errno));
}

/* Certificate first, model last: a certificate without its model is refused by its hash. When the
 * model cannot be put into place the old certificate comes back: the old pair is whole again. A
 * temporary file that is gone was moved, also when the move ends with a failure to sync. */
static pare_status move_into_place(const pare_publish_opts *o, const paths *p, pare_err *err)
{
    bool kept = false;
    if (o->folder) return pare_folder_move(p->temp, p->out, o->overwrite, err);
    pare_status st = o->overwrite ? keep_old(&kept, p, err) : PARE_OK;
    if (!st) st = pare_file_move(p->cert_temp, p->cert, o->overwrite, err);
    if (!st) st = pare_file_move(p->temp, p->out, o->overwrite, err);
    if (st && pare_file_exists(p->temp)) {
        if (!kept && !pare_file_exists(p->cert_temp)) unlink(p->cert);
        if (kept && rename(p->old, p->cert) != 0)
            return pare_fail(err, PARE_ERR_IO,
                             "%s: cannot be written, and the old certificate is now %s: %s", p->out,
                             p->old, strerror(errno));
    }
    if (kept) unlink(p->old); /* renaming one of two links to a file leaves both */
    return st;
}

static pare_status write_and_certify(pare_cert *cert, pare_arena *a, const pare_model *in,
                                     pare_model **out, const pare_publish_opts *o, const paths *p,
                                     pare_err *err)
{
    if (o->folder) pare_folder_remove(p->temp); /* of a process of our number that was killed */
    pare_status st = o->folder ? pare_export_like(*out, in, o->in_path, p->temp, o->dtype, err)
                               : pare_model_save(*out, p->temp, true, NULL, err);
    if (st) return st;
    pare_model_free(*out);
    *out = NULL;
    if (!(st = certify(cert, a, in, o, p, err)) &&
        !(st = pare_cert_write(cert, p->cert_temp, true, err)))
        st = move_into_place(o, p, err);
    return st;
}

pare_status pare_publish(pare_cert *cert, pare_arena *a, const pare_model *in, pare_model **out,
                         const pare_publish_opts *opts, pare_err *err)
{
    paths p = {0};
    pare_status st = make_paths(&p, a, opts, err);
    if (!st && opts->folder) st = pare_folder_check(p.out, opts->overwrite, err);
    if (!st && !opts->folder) st = pare_out_check(p.out, opts->overwrite, err);
    if (!st && !opts->folder) st = pare_out_check(p.cert, opts->overwrite, err);
    if (st) return st;
    p.weights = pare_model_size(*out, 1, 0).bytes;
    st = write_and_certify(cert, a, in, out, opts, &p, err);
    if (!st) {
        if (!opts->folder) pare_out_sweep(p.out); /* a folder's move has done so */
        if (!opts->folder) pare_out_sweep(p.cert);
    } else if (opts->folder) {
        pare_folder_remove(p.temp);
    } else {
        unlink(p.temp);
        unlink(p.cert_temp);
    }
    return st;
}
