/* A thousand data sets: statements about new inputs hold as often as they say, and none is written
 * where the held-out inputs decided (new_input_games.h). */
#include "new_input_games.h"

static void statements_about_new_inputs_hold(void **state)
{
    (void)state;
    games_play(1000, 4000, 1000, 1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(statements_about_new_inputs_hold)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
