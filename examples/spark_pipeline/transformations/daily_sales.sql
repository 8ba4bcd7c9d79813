-- What each category came to on each day. Late clicks count: windows did not wait for them, a day can.
CREATE MATERIALIZED VIEW daily_sales PARTITIONED BY (day) AS
SELECT category, sum(clicks) AS clicks, sum(purchases) AS purchases, sum(cents) AS cents,
       sum(late) AS late, day
FROM (
  SELECT category, clicks, purchases, cents, 0 AS late, day FROM page_windows
  UNION ALL
  SELECT category, 1, if(kind = 'purchase', 1, 0), cents, 1, to_date(event_time)
  FROM late_log JOIN pages USING (page)
)
GROUP BY day, category
