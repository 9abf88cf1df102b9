/* An input that is not there yet (spec, 8.5). If k inputs and a new one are exchangeable
 * (independent draws of one source, say) and both models were made without them, each of the k + 1
 * is as likely as any other to have the largest error. So
 *     P( error of the new one > largest error of the k ) <= 1 / (k + 1),
 * over the draw of all k + 1; ties make it smaller. What is proven of the k is at least their
 * largest error, and stands in its place. The error is a function of both models: an input that the
 * input model was trained on is no more like a new one than an input that the cut was fitted to.
 * That neither has seen them cannot be read off the files: the certificate names it as a
 * hypothesis, undecided. What is proven of the first tokens of the k says nothing of a whole new
 * input: it is cut as they are. */
#include <pare/outputs.h>
#include <pare/publish.h>
#include <stdio.h>
#include <string.h>

bool pare_new_input_asked(const pare_statement *asked, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (asked[i].name && strcmp(asked[i].name, PARE_NEW_INPUT) == 0) return true;
    return false;
}

pare_statement pare_exchangeable(pare_arena *a, const pare_inputs *set, const pare_data_ref *data,
                                 double proven)
{
    size_t k = 0;
    char most[72] = "";
    if (strcmp(data->kind, "part") == 0 && data->tokens > 0)
        snprintf(most, sizeof most, ", and cut to its first %zu tokens at most,", data->tokens);
    for (size_t i = 0; i < set->n; i++) k += set->in[i].batch;
    const char *const domain =
        pare_sprintf(a,
                     "one more input drawn%s like the %zu of the data that neither the training of "
                     "the model nor the cut has seen",
                     most, k);
    return (pare_statement){.name = domain ? PARE_NEW_INPUT : NULL,
                            .norm = PARE_NORM_HEADLINE,
                            .domain = domain,
                            .probability = (double)k / (double)(k + 1),
                            .bound = proven};
}
