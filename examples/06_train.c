/* 06_train.c - train a small GPT to sort. pare_task_series reads the training task from a data
 * file, pare_init_model makes a model of fitting shape, and pare_train trains it and returns the
 * weights with the best validation score. */
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#include <pare/pare.h>

#include <stdlib.h>
#include <unistd.h>

static void log_step(void *self, const pare_train_log *l)
{
    (void)self;
    if (l->step % 100 == 0)
        printf("step %llu of %llu\n", (unsigned long long)l->step, (unsigned long long)l->steps);
}

static pare_status train(const char *path, pare_arena *a, pare_err *err)
{
    pare_task_series_opts data = PARE_TASK_SERIES_OPTS_DEFAULT;
    data.train = path;
    data.batch = 32;
    pare_task task;
    pare_task_facts f;
    pare_model *fresh = NULL, *sorts = NULL;
    pare_train_result r;
    pare_status st = pare_task_series(&task, &f, a, &data, err);
    if (st) return st;
    const pare_init shape = {.kind = PARE_INIT_GPT,
                             .dim = 16,
                             .layers = 2,
                             .heads = 2,
                             .vocab = f.ids,
                             .context = f.tokens};
    pare_train_opts how = PARE_TRAIN_OPTS_DEFAULT;
    how.steps = 200;
    how.warmup = 10;
    how.eval_every = 20;
    how.lr = 1e-2;
    how.last_lr = 1e-3;
    how.log = log_step;
    st = pare_init_model(&fresh, &shape, err);
    if (!st) st = pare_train(&sorts, &r, fresh, &task, &how, NULL, err);
    if (!st)
        printf("%zu training rows; %s of the symbols in the test rows are right\n", f.train,
               r.test > 0.95 ? "more than 95 %" : "too few");
    pare_model_free(fresh);
    pare_model_free(sorts);
    return st;
}

int main(void)
{
    char folder[] = "/tmp/pare-example-XXXXXX", path[64];
    pare_err err = {0};
    pare_arena *a = pare_arena_new();
    if (!a || !mkdtemp(folder)) return 2;
    snprintf(path, sizeof path, "%s/sort.npz", folder);
    pare_status st = pare_make_sort(path, 1000, 4, 3, 0, false, &err);
    if (!st) st = train(path, a, &err);
    if (st) fprintf(stderr, "%s\n", err.msg);
    unlink(path);
    rmdir(folder);
    pare_arena_free(a);
    return pare_exit_code(st);
}
