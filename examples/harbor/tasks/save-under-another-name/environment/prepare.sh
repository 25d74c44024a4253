#!/bin/bash
# What this task finds on its desktop.
echo 'Chapter one.' >/root/draft.txt
