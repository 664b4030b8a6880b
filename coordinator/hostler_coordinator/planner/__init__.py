"""The planner: everything known -> what to do now and why everything else waits; pure, it neither sleeps nor calls.

`world` is what it sees, `actions` what it may say, `turn` the fixed order of its topics, one module per topic.
"""
