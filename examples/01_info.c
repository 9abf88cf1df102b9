/* 01_info.c - load a model and print its size. Without an argument the program makes a model with
 * random weights first, saves it and loads it; with a path it describes that model. */
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#include <pare/pare.h>

#include <stdlib.h>
#include <unistd.h>

static pare_status make(const char *path, pare_err *err)
{
    const pare_random_model_opts opts = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m = NULL;
    pare_status st = pare_random_model(&m, &opts, err);
    if (!st) st = pare_model_save(m, path, false, NULL, err);
    pare_model_free(m);
    return st;
}

static void describe(const pare_model *m)
{
    const size_t tokens = m->context ? m->context : 64;
    const pare_size s = pare_model_size(m, tokens, 0);
    printf("%s: %zu blocks of width %zu, %zu outputs\n", m->name, m->nblocks,
           pare_model_width(m, 0), pare_model_outputs(m));
    printf("%llu parameters, %llu bytes, %llu multiply-adds for %zu tokens\n",
           (unsigned long long)s.parameters, (unsigned long long)s.bytes,
           (unsigned long long)s.macs, tokens);
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/pare-example-XXXXXX", made[64];
    const char *path = argc > 1 ? argv[1] : made;
    pare_err err = {0};
    pare_model *m = NULL;
    if (argc < 2) {
        if (!mkdtemp(folder)) return 2;
        snprintf(made, sizeof made, "%s/m.safetensors", folder);
    }
    pare_status st = argc < 2 ? make(path, &err) : PARE_OK;
    if (!st) st = pare_model_load(&m, path, &err);
    if (st)
        fprintf(stderr, "%s\n", err.msg);
    else
        describe(m);
    pare_model_free(m);
    if (argc < 2) {
        unlink(made);
        rmdir(folder);
    }
    return pare_exit_code(st);
}
