/* Some data sets (long_new_input.c has a thousand): statements about new inputs hold as often as
 * they say, and none is written where the held-out inputs decided (new_input_games.h). */
#include "new_input_games.h"

static void statements_about_new_inputs_hold(void **state)
{
    (void)state;
    games_play(24, 1000, 100, 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(statements_about_new_inputs_hold)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
