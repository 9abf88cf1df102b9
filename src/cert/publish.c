/* The end of every reduction: write, load again, measure, prove, compare, and only then appear. */
#include <pare/publish.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *pare_domain_text(pare_arena *a, const pare_data_ref *data)
{
    if (strcmp(data->kind, "part") == 0) {
        char most[64] = "";
        if (data->tokens)
            snprintf(most, sizeof most, ", its first %zu tokens at most", data->tokens);
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
    char *cert, *temp, *cert_temp;
    char *old; /* the certificate that is being replaced, until its model is replaced as well */
} paths;

static pare_status make_paths(paths *p, pare_arena *a, const char *out, pare_err *err)
{
    p->cert = pare_sprintf(a, "%s.cert.json", out);
    p->temp = pare_sprintf(a, "%s" PARE_PART_SUFFIX, out, (long)getpid());
    p->cert_temp = pare_sprintf(a, "%s.cert.json" PARE_PART_SUFFIX, out, (long)getpid());
    p->old = pare_sprintf(a, "%s.cert.json.%ld-old.tmp", out, (long)getpid());
    return p->cert && p->temp && p->cert_temp && p->old ? PARE_OK : pare_no_memory(err);
}

/* The prover's own path and the f64 reference must tell the same story. */
static pare_status same_story(const pare_cert *c, double reference, pare_err *err)
{
    const double slack = isfinite(c->measured_slack) ? c->measured_slack : 0;
    const double off = fabs(reference - c->measured);
    if (!(off <= fmax(1e-3 * c->measured, slack)))
        return pare_fail(err, PARE_ERR_VERIFY,
                         "self-check: the reference measures %.6g, the prover %.6g", reference,
                         c->measured);
    if (!(reference <= c->proven + slack))
        return pare_fail(err, PARE_ERR_VERIFY,
                         "self-check: measured %.6g is above the proven bound %.6g", reference,
                         c->proven);
    return PARE_OK;
}

/* What is asked for stands in the certificate by name, nothing of it proven yet. */
static pare_status ask(pare_cert *cert, pare_arena *a, const pare_publish_opts *o, pare_err *err)
{
    cert->statements = pare_alloc(a, o->nask, sizeof *cert->statements);
    if (o->nask && !cert->statements) return pare_no_memory(err);
    for (size_t i = 0; i < o->nask; i++)
        cert->statements[cert->nstatements++] = (pare_statement){.name = o->ask[i], .bound = NAN};
    return PARE_OK;
}

static pare_status describe(pare_cert *cert, pare_arena *a, const pare_model *in,
                            const pare_model *out, const pare_publish_opts *o, const paths *p,
                            pare_err *err)
{
    pare_status st;
    *cert = (pare_cert){.reduction = o->prover->reduction, .seed = o->seed};
    cert->apriori = cert->proven = cert->measured = cert->rounding = NAN;
    if ((st = ask(cert, a, o, err)) ||
        (st = pare_file_ref_make(&cert->input, a, p->cert, o->in_path, in, err)) ||
        (st = pare_file_ref_make(&cert->output, a, p->cert, p->temp, out, err)))
        return st;
    /* The bytes are those of the temporary file; the name is the final one. */
    cert->output.path = pare_path_relative(a, p->cert, o->out_path);
    if (!cert->output.path) return pare_no_memory(err);
    st =
        pare_data_ref_make(&cert->data, a, p->cert, o->data_path, o->split, o->tokens, o->set, err);
    if (!o->part) return st;
    cert->data.kind = "part";
    cert->data.first = o->first;
    cert->data.tokens = o->tokens;
    return st;
}

static pare_status certify(pare_cert *cert, pare_arena *a, const pare_model *in,
                           const pare_publish_opts *o, const paths *p, pare_err *err)
{
    pare_model *again = NULL;
    double reference = NAN;
    pare_status st = pare_model_load(&again, p->temp, err);
    if (st) return st;
    if (!(st = describe(cert, a, in, again, o, p, err)) &&
        !(st = o->prover->prove(cert, a, cert, in, again, o->set, o->exec, err)) &&
        !(st = pare_measure(&reference, in, again, o->set, o->exec, err)))
        st = same_story(cert, reference, err);
    pare_model_free(again);
    if (st) return st;
    cert->measured = reference;
    pare_cert_inflate(cert);
    if (!(cert->proven <= o->max_error)) {
        char proven[40];
        return pare_fail(err, PARE_ERR_PROMISE,
                         "the proven bound is %s, more than --max-error %g; nothing was written",
                         pare_ub_format(proven, (pare_ub){cert->proven}, 3), o->max_error);
    }
    return PARE_OK;
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
static pare_status appear(const pare_publish_opts *o, const paths *p, pare_err *err)
{
    bool kept = false;
    pare_status st = o->overwrite ? keep_old(&kept, p, err) : PARE_OK;
    if (!st) st = pare_file_move(p->cert_temp, p->cert, o->overwrite, err);
    if (!st) st = pare_file_move(p->temp, o->out_path, o->overwrite, err);
    if (st && pare_file_exists(p->temp)) {
        if (!kept && !pare_file_exists(p->cert_temp)) unlink(p->cert);
        if (kept && rename(p->old, p->cert) != 0)
            return pare_fail(err, PARE_ERR_IO,
                             "%s: cannot be written, and the old certificate is now %s: %s",
                             o->out_path, p->old, strerror(errno));
    }
    if (kept) unlink(p->old); /* renaming one of two links to a file leaves both */
    return st;
}

static pare_status make_and_certify(pare_cert *cert, pare_arena *a, const pare_model *in,
                                    pare_model **out, const pare_publish_opts *o, const paths *p,
                                    pare_err *err)
{
    pare_status st = pare_model_save(*out, p->temp, true, NULL, err);
    if (st) return st;
    pare_model_free(*out);
    *out = NULL;
    if (!(st = certify(cert, a, in, o, p, err)) &&
        !(st = pare_cert_write(cert, p->cert_temp, true, err)))
        st = appear(o, p, err);
    return st;
}

pare_status pare_publish(pare_cert *cert, pare_arena *a, const pare_model *in, pare_model **out,
                         const pare_publish_opts *opts, pare_err *err)
{
    paths p = {0};
    pare_status st;
    if ((st = make_paths(&p, a, opts->out_path, err)) ||
        (st = pare_out_check(opts->out_path, opts->overwrite, err)) ||
        (st = pare_out_check(p.cert, opts->overwrite, err)))
        return st;
    st = make_and_certify(cert, a, in, out, opts, &p, err);
    if (st) {
        unlink(p.temp);
        unlink(p.cert_temp);
    } else {
        pare_out_sweep(opts->out_path);
        pare_out_sweep(p.cert);
    }
    return st;
}
