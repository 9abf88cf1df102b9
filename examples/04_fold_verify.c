/* 04_fold_verify.c - fold a model (move the gains and biases of its norms into the next weights),
 * write the result with a certificate, and verify the certificate from the files. */
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#include <pare/pare.h>

#include <stdlib.h>
#include <unistd.h>

static pare_status fold(const char *in, const char *out, pare_arena *a, pare_err *err)
{
    pare_model *m = NULL, *smaller = NULL;
    pare_fold_report report;
    pare_inputs set;
    pare_cert cert;
    char bound[40];
    pare_publish_opts p = PARE_PUBLISH_OPTS_DEFAULT;
    p.in_path = in;
    p.out_path = out;
    p.tokens = 8;
    p.set = &set;
    p.prover = &pare_fold_prover;
    pare_status st = pare_model_load(&m, in, err);
    if (!st) st = pare_inputs_random(&set, a, m, 4, p.tokens, p.seed, err);
    if (!st) st = pare_fold(&smaller, &report, m, err);
    if (!st) st = pare_publish(&cert, a, m, &smaller, &p, err);
    if (!st) {
        printf("folded %zu norms and %zu key biases\n", report.norms, report.key_biases);
        printf("proven %s on %s\n", pare_ub_format(bound, pare_ub_exact(cert.proven), 2),
               cert.domain);
    }
    pare_model_free(m);
    pare_model_free(smaller);
    return st;
}

int main(void)
{
    char folder[] = "/tmp/pare-example-XXXXXX";
    const pare_random_model_opts opts = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_err err = {0};
    pare_model *m = NULL;
    pare_arena *a = pare_arena_new();
    if (!a || !mkdtemp(folder)) return 2;
    char *in = pare_sprintf(a, "%s/m.safetensors", folder);
    char *out = pare_sprintf(a, "%s/f.safetensors", folder);
    char *cert = pare_sprintf(a, "%s/f.safetensors.cert.json", folder);
    pare_status st = in && out && cert ? pare_random_model(&m, &opts, &err) : pare_no_memory(&err);
    if (!st) st = pare_model_save(m, in, false, NULL, &err);
    pare_model_free(m);
    if (!st) st = fold(in, out, a, &err);
    if (!st) st = pare_verify_file(out, NULL, &err);
    puts(st ? err.msg : "verified");
    if (in && out && cert) unlink(in), unlink(out), unlink(cert);
    rmdir(folder);
    pare_arena_free(a);
    return pare_exit_code(st);
}
